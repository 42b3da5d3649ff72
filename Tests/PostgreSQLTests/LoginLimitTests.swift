import CountersignSchemes
import CountersignSeal
import CountersignWire
import DatabaseFixture
import Foundation
import Testing

@testable import CountersignAuthority
@testable import CountersignSQL

/// The limits on guesses over several nodes are those of one: no bucket admits more, whichever node is asked.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
final class LoginLimitTests {
    private let address: PostgreSQLAddress
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    private let keys: AccountKeys
    private let database: Database
    private let app: AppName
    private let rules: LoginLimits.Rules

    init() throws {
        address = try #require(TestDatabases.shared).make()
        try StorePlace.postgreSQL(address).open().prepare()
        database = Database(try PostgreSQLConnection(to: address))
        app = try #require(AppName("demo"))
        let data = try DataFolder(folder, absence: .create)
        keys = try AccountKeys(
            Deployment(
                folder: data, store: StorePlace.sqlite(path: data.database).open(),
                environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)]))
        var rules = LoginLimits.Rules()
        rules.account = RateLimit(burst: 6, refillInterval: .seconds(600))
        rules.address = RateLimit(burst: 4, refillInterval: .seconds(600))
        rules.device = RateLimit(burst: 3, refillInterval: .seconds(600))
        rules.solved = RateLimit(burst: 5, refillInterval: .seconds(600))
        self.rules = rules
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func node() -> SharedLoginLimits {
        SharedLoginLimits(LoginLimits(rules), keys: keys, in: PostgreSQLLogins(address, rows: nil))
    }

    private func name(_ text: String) throws -> AccountName { try AccountName(normalizing: text) }

    private func from(_ number: UInt8) -> LoginLimits.Caller {
        let bytes: [UInt8] = [10, 0, 0, number]
        return .stranger(ClientAddress(bytes.span) ?? .unknown)
    }

    private func isAllowed(_ decision: LoginLimits.Decision) -> Bool {
        if case .allowed = decision { true } else { false }
    }

    @Test("starts at once at three nodes: as many are admitted as at one")
    func accountsHoldExactly() async throws {
        let (bob, app) = (try name("bob"), app)
        let nodes = (0..<3).map { _ in node() }
        let callers = (0..<60).map { from(UInt8($0)) }
        let admitted = try await withThrowingTaskGroup(of: Bool.self) { group in
            for (number, caller) in callers.enumerated() {
                let node = nodes[number % 3]
                group.addTask {
                    let decision = try node.start(app: app, account: bob, from: caller)
                    return decision.exhausted != .account
                }
            }
            return try await group.reduce(into: 0) { if $1 { $0 += 1 } }
        }
        #expect(admitted == rules.account.burst)
    }

    @Test("one address at three nodes, over many names")
    func addressesHoldExactly() throws {
        let nodes = (0..<3).map { _ in node() }
        var admitted = 0
        for number in 0..<30 {
            let decision = try nodes[number % 3].start(
                app: app, account: name("user \(number)"), from: from(1))
            if isAllowed(decision) { admitted += 1 }
        }
        #expect(admitted == rules.address.burst)
    }

    @Test("the decisions are those of one process, for every kind of caller")
    func decideAsOneProcess() throws {
        let own = LoginLimits(rules)
        let nodes = (0..<3).map { _ in node() }
        var random = SystemRandomNumberGenerator()
        let now: Int64 = 1_800_000_000_000
        for step in 0..<400 {
            let node = nodes[step % 3]
            let account = try name("user \(Int.random(in: 0..<4, using: &random))")
            var bytes: [UInt8] = [
                0x20, 1, 0, 0, 0, UInt8.random(in: 0..<3, using: &random),
                UInt8.random(in: 0..<2, using: &random), UInt8.random(in: 0..<3, using: &random), 0, 0, 0, 0,
                0, 0, 0, 1,
            ]
            if Bool.random(using: &random) { bytes = [10, 0, 0, UInt8.random(in: 0..<40, using: &random)] }
            let address = try #require(ClientAddress(bytes.span) as ClientAddress?)
            let (expected, found): (LoginLimits.Decision, LoginLimits.Decision)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                expected = own.startSolved(app: app, account: account, from: address, at: now)
                found = try node.startSolved(app: app, account: account, from: address)
            case 1:
                expected = own.startRegistration(from: address, at: now)
                found = try node.startRegistration(from: address)
            case 2:
                let device = LoginLimits.Caller.knownDevice([UInt8.random(in: 0..<2, using: &random)])
                expected = own.start(app: app, account: account, from: device, at: now)
                found = try node.start(app: app, account: account, from: device)
            default:
                expected = own.start(app: app, account: account, from: .stranger(address), at: now)
                found = try node.start(app: app, account: account, from: .stranger(address))
            }
            #expect(found.exhausted == expected.exhausted, "step \(step)")
            #expect(
                try node.solutionsUsed(app: app, account: account)
                    == own.solutionsUsed(app: app, account: account, at: now))
            guard Int.random(in: 0..<5, using: &random) == 0, case .allowed(let receipt) = expected,
                case .allowed(let shared) = found
            else { continue }
            // Another node refunds it, from its bytes.
            own.refund(receipt, at: now)
            try nodes[(step + 1) % 3].refund(
                try #require(LoginLimits.Receipt(encoded: shared.encoded)))
        }
    }

    @Test("what is refunded at another node can be used again, and no more than that")
    func refunds() throws {
        let nodes = (0..<2).map { _ in node() }
        let bob = try name("bob")
        for round in 0..<20 {
            guard
                case .allowed(let receipt) = try nodes[round % 2].start(
                    app: app, account: bob, from: from(1))
            else {
                Issue.record("refused in round \(round)")
                return
            }
            try nodes[(round + 1) % 2].refund(receipt)
        }
        #expect(try database.integer("SELECT max(full_at - milliseconds()) FROM login_limit") ?? 1 <= 0)
    }

    @Test func refundingAllButAddressKeepsTheAddress() throws {
        let node = node()
        guard case .allowed(let receipt) = try node.start(app: app, account: name("bob"), from: from(1))
        else { throw Login.wrongCredentials }
        try node.refund(receipt) { $0 != .address }
        let kinds = try database.rows("SELECT kind FROM login_limit WHERE full_at > milliseconds()") {
            $0.integer(0)
        }
        #expect(kinds == [Int64(LoginLimits.Kind.address.rawValue)])
    }

    @Test("full buckets are removed, and the others are kept")
    func expiry() throws {
        try database.execute(
            "INSERT INTO login_limit SELECT 1, slot, 1000 FROM generate_series(0, 999) AS slot")
        _ = try node().start(app: app, account: name("bob"), from: from(1))
        try node().expire()
        #expect(try database.integer("SELECT count(*) FROM login_limit") == 2)
    }

    @Test("a time that is too far ahead, as after a clock was set back, is cut to one refill")
    func farAhead() throws {
        _ = try node().start(app: app, account: name("bob"), from: from(1))
        try database.execute("UPDATE login_limit SET full_at = full_at + 1000000000000")
        guard case .retry(let seconds, _) = try node().start(app: app, account: name("bob"), from: from(1))
        else {
            Issue.record("it was admitted")
            return
        }
        #expect(seconds <= 600 + 60)
    }

    @Test("without its store no node admits a guess")
    func failsClosed() throws {
        let node = node()
        let bob = try name("bob")
        #expect(isAllowed(try node.start(app: app, account: bob, from: from(1))))
        try database.execute("DROP TABLE login_limit")
        for number in 0..<3 {
            #expect(throws: OperationalError.self) {
                try node.start(app: app, account: bob, from: from(UInt8(10 + number)))
            }
        }
    }

    @Test("a caller that was refused costs the store nothing for a second")
    func refusalsAreRemembered() throws {
        let node = node()
        for number in 0..<10 {
            _ = try node.start(app: app, account: name("user \(number)"), from: from(1))
        }
        try database.execute("DROP TABLE login_limit")
        #expect(try node.start(app: app, account: name("more"), from: from(1)).exhausted == .caller)
    }
}

extension LoginLimits.Decision {
    fileprivate var exhausted: LoginLimits.Exhausted? {
        if case .retry(_, let exhausted) = self { exhausted } else { nil }
    }
}
