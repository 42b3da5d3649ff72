import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import Testing

@Suite struct LoginLimitsTests {
    private let app: AppName
    private let bob: AccountName
    private let now: Int64 = 1_700_000_000_000

    init() throws {
        app = try #require(AppName("demo"))
        bob = try AccountName(normalizing: "bob")
    }

    private func rules() -> LoginLimits.Rules {
        var rules = LoginLimits.Rules()
        rules.account = RateLimit(burst: 3, refillInterval: .seconds(60))
        rules.address = RateLimit(burst: 6, refillInterval: .seconds(10))
        rules.device = RateLimit(burst: 2, refillInterval: .seconds(30))
        rules.capacity = 1 << 12
        return rules
    }

    private func stranger(_ last: UInt8) throws -> LoginLimits.Caller {
        .stranger(try #require(ClientAddress([192, 0, 2, last])))
    }

    @Test("an account is guessed at so often, from wherever, and a known device still signs in")
    func knownDevice() throws {
        let limits = LoginLimits(rules())
        for last in 1...3 {
            #expect(limits.start(app: app, account: bob, from: try stranger(UInt8(last)), at: now).isAllowed)
        }
        #expect(
            limits.start(app: app, account: bob, from: try stranger(4), at: now)
                == .retry(after: 60, for: .account))
        // Each known device has its own limit, which unknown devices cannot use up.
        for device in [UInt8(1), 1, 2, 2] {
            #expect(limits.start(app: app, account: bob, from: .knownDevice([device]), at: now).isAllowed)
        }
        #expect(limits.start(app: app, account: bob, from: .knownDevice([1]), at: now) == .retry(after: 30))
        // Its attempts do not count against the limit of unknown devices.
        #expect(limits.start(app: app, account: bob, from: try stranger(4), at: now + 60_000).isAllowed)
    }

    @Test("a process that takes over counts on, and both count together")
    func sharing() throws {
        let first = LoginLimits(rules())
        #expect(first.start(app: app, account: bob, from: try stranger(1), at: now).isAllowed)
        let second = try LoginLimits(rules(), sharing: #require(first.sharing))
        #expect(second.start(app: app, account: bob, from: try stranger(2), at: now).isAllowed)
        #expect(first.start(app: app, account: bob, from: try stranger(3), at: now).isAllowed)
        #expect(
            second.start(app: app, account: bob, from: try stranger(4), at: now)
                == .retry(after: 60, for: .account))
        var others = rules()
        others.capacity *= 4
        #expect(throws: OperationalError.self) {
            _ = try LoginLimits(others, sharing: #require(first.sharing))
        }
    }

    @Test("an address tries so many accounts")
    func address() throws {
        let limits = LoginLimits(rules())
        let caller = try stranger(1)
        for number in 1...6 {
            let account = try AccountName(normalizing: "user \(number)")
            #expect(limits.start(app: app, account: account, from: caller, at: now).isAllowed)
        }
        #expect(limits.start(app: app, account: bob, from: caller, at: now) == .retry(after: 13))
        #expect(limits.start(app: app, account: bob, from: try stranger(2), at: now).isAllowed)
    }

    @Test("a start that the account's limit refuses is charged to its address")
    func refusedStarts() throws {
        let limits = LoginLimits(rules())
        for last in 1...3 {
            _ = limits.start(app: app, account: bob, from: try stranger(UInt8(last)), at: now)
        }
        let caller = try stranger(9)
        for _ in 0..<6 {
            #expect(
                limits.start(app: app, account: bob, from: caller, at: now)
                    == .retry(after: 60, for: .account))
        }
        #expect(limits.start(app: app, account: bob, from: caller, at: now) == .retry(after: 13))
        let other = try AccountName(normalizing: "other")
        #expect(!limits.start(app: app, account: other, from: caller, at: now).isAllowed)
        #expect(limits.start(app: app, account: other, from: try stranger(8), at: now).isAllowed)
    }

    @Test("an address at full speed runs dry and stays dry, and is open a minute after it has stopped")
    func fullSpeed() throws {
        let limits = LoginLimits(rules())
        let caller = try stranger(1)
        var reached = 0
        for millisecond in stride(from: Int64(0), to: 3_600_000, by: 1_000) {
            let decision = limits.start(app: app, account: bob, from: caller, at: now + millisecond)
            if case .retry(_, for: .caller) = decision { continue }
            reached += 1
        }
        #expect(reached <= 7, "those of the first seconds")
        let end = now + 3_600_000
        #expect(!limits.start(app: app, account: bob, from: caller, at: end + 60_000).isAllowed)
        #expect(limits.start(app: app, account: bob, from: caller, at: end + 140_000).isAllowed)
        #expect(limits.start(app: app, account: bob, from: try stranger(2), at: end + 200_000).isAllowed)
    }

    @Test("a clock that was set back makes nobody wait for yesterday, nor for a debt")
    func clockSetBack() throws {
        let limits = LoginLimits(rules())
        let caller = try stranger(1)
        for _ in 0..<10 { _ = limits.start(app: app, account: bob, from: caller, at: now) }
        let yesterday = now - 86_400_000
        let other = try AccountName(normalizing: "other")
        #expect(limits.start(app: app, account: other, from: caller, at: yesterday) == .retry(after: 13))
        #expect(limits.start(app: app, account: other, from: caller, at: yesterday + 12_500).isAllowed)
    }

    @Test("who asks again as often as attempts grow back gets in")
    func patience() throws {
        let limits = LoginLimits(rules())
        let caller = try stranger(1)
        for second in stride(from: Int64(0), to: 600, by: 1) {
            _ = limits.start(app: app, account: bob, from: caller, at: now + second * 1_000)
        }
        let tries = try (1...12 as ClosedRange<Int64>).map {
            let name = try AccountName(normalizing: "user \($0)")
            return limits.start(app: app, account: name, from: caller, at: now + (600 + 10 * $0) * 1_000)
        }
        #expect(tries.contains { $0.isAllowed })
    }

    /// An address in the IPv6 network 2001:db8:`site`::/48, in its `household` of 56 bits.
    private func stranger(site: UInt8, household: UInt8, _ last: UInt8) throws -> LoginLimits.Caller {
        let bytes: [UInt8] = [0x20, 1, 0x0D, 0xB8, 0, site, household, last, 0, 0, 0, 0, 0, 0, 0, 1]
        return .stranger(try #require(ClientAddress(bytes)))
    }

    private func allowed(_ count: Int, by limits: LoginLimits, from: (UInt8) throws -> LoginLimits.Caller)
        throws -> Int
    {
        try (0..<count).count {
            let name = try AccountName(normalizing: "user \($0)")
            return limits.start(app: app, account: name, from: try from(UInt8($0)), at: now).isAllowed
        }
    }

    @Test("120 starts from 120 networks of 64 bits in one of 48, or of 56, are limited")
    func networks() throws {
        let limits = LoginLimits()
        let site = try allowed(120, by: limits) { try stranger(site: 1, household: $0, $0) }
        #expect(site == 100)
        let household = try allowed(120, by: limits) { try stranger(site: 2, household: 1, $0) }
        #expect(household == 75)
        #expect(try allowed(20, by: limits) { try stranger(site: 2, household: 2, $0) } == 20)
        #expect(try allowed(60, by: limits) { try stranger(site: 3, household: $0, $0) } == 60)
        let work = try (0..<200).count {
            guard case .stranger(let address) = try stranger(site: 1, household: UInt8($0), 1) else {
                return false
            }
            return limits.start(.deviceProof, from: address, at: now).isAllowed
        }
        #expect(work == 120)
    }

    @Test("one network of 64 bits at full speed does not use up the limits of those around it")
    func subscriber() throws {
        let limits = LoginLimits()
        _ = try allowed(250, by: limits) { _ in try stranger(site: 1, household: 1, 1) }
        #expect(try allowed(20, by: limits) { try stranger(site: 1, household: 1, $0 + 2) } == 20)
        #expect(try allowed(20, by: limits) { try stranger(site: 1, household: 2, $0) } == 20)
    }

    private func address(site: UInt8, household: UInt8, _ last: UInt8) throws -> ClientAddress {
        guard case .stranger(let address) = try stranger(site: site, household: household, last) else {
            throw OperationalError(.failed, message: "expected a stranger")
        }
        return address
    }

    @Test(
        "three subscribers that fail as often as they may keep nobody out of their /56, nor fifteen their /48",
        arguments: [(subscribers: 3, households: 1), (subscribers: 15, households: 5)])
    func subscribers(_ attack: (subscribers: Int, households: Int)) throws {
        let limits = LoginLimits()
        var refused = 0
        for second in 0..<3_600 {
            let time = now + Int64(second) * 1_000
            for subscriber in 0..<attack.subscribers {
                let household = UInt8(subscriber % attack.households)
                let caller = try stranger(site: 1, household: household, UInt8(subscriber + 2))
                let name = try AccountName(normalizing: "user \(subscriber)")
                // More often, an address has a debt and gets less.
                guard second < 50 || (second + subscriber) % 10 == 0 else { continue }
                _ = limits.start(app: app, account: name, from: caller, at: time)
            }
            // After the first minute, in which each has its 50 at once.
            guard second > 300, second % 60 == 0 else { continue }
            let name = try AccountName(normalizing: "owner \(second)")
            let owner = try stranger(site: 1, household: 0, 1)
            if !limits.start(app: app, account: name, from: owner, at: time).isAllowed { refused += 1 }
        }
        #expect(refused == 0)
    }

    @Test("a network that refuses has no debt, and does not debit a wider one")
    func networkRefusals() throws {
        let limits = LoginLimits()
        // A /56 that its subscribers use up, and go on.
        for round in 0..<10 {
            _ = try allowed(200, by: limits) { try stranger(site: 1, household: 1, $0 &+ UInt8(round)) }
        }
        let name = try AccountName(normalizing: "later")
        #expect(
            limits.start(app: app, account: name, from: try stranger(site: 1, household: 1, 250), at: now)
                == .retry(after: 3))
        #expect(
            limits.start(
                app: app, account: name, from: try stranger(site: 1, household: 1, 251), at: now + 2_500
            ).isAllowed)
        // The /48 lost the 76 that its /56 allowed, and nothing to the starts that the /56 refused.
        #expect(try allowed(100, by: limits) { try stranger(site: 1, household: $0 + 2, 1) } == 24)
        // Nor does the /56 pay for what the /48 refuses.
        let other = try stranger(site: 1, household: 200, 1)
        for _ in 0..<10 { _ = limits.start(app: app, account: name, from: other, at: now) }
        let later = now + 100_000
        let count = try (0..<75).count {
            limits.start(
                app: app, account: try AccountName(normalizing: "user \($0)"),
                from: try stranger(site: 1, household: 200, UInt8($0 + 2)), at: later
            ).isAllowed
        }
        #expect(count == 75)
    }

    @Test("a network that starts without work have used up is open to solved work, and one cannot close it")
    func solutionsOfNetworks() throws {
        let limits = LoginLimits()
        _ = try allowed(200, by: limits) { try stranger(site: 1, household: $0, $0) }
        let owner = try address(site: 1, household: 255, 1)
        #expect(!limits.start(app: app, account: bob, from: .stranger(owner), at: now).isAllowed)
        #expect(limits.solutionsUsed(app: app, account: bob, from: owner, at: now) == 0)
        #expect(limits.startSolved(app: app, account: bob, from: owner, at: now).isAllowed)
        // A whole /48 that works for an hour leaves the account's second bucket open to others.
        var used = 0
        for second in 0..<3_600 {
            let address = try address(site: 2, household: UInt8(second % 250), UInt8(second / 250))
            let time = now + Int64(second) * 1_000
            if limits.startSolved(app: app, account: bob, from: address, at: time).isAllowed { used += 1 }
        }
        #expect(used <= 6 + 45, "\(used)")
        let end = now + 3_600_000
        let site = try address(site: 2, household: 251, 1)
        #expect(limits.solutionsUsed(app: app, account: bob, from: site, at: end) == nil)
        let elsewhere = try address(site: 3, household: 1, 1)
        let left = try #require(limits.solutionsUsed(app: app, account: bob, from: elsewhere, at: end))
        #expect(left < 10)
        #expect(limits.startSolved(app: app, account: bob, from: elsewhere, at: end).isAllowed)
    }

    @Test("starts without work do not use up their address's solutions, and it is not asked to work in vain")
    func solutionsOfAddress() throws {
        let limits = LoginLimits()
        let address = try #require(ClientAddress([203, 0, 113, 1]))
        for _ in 0..<200 {
            _ = limits.start(app: app, account: bob, from: .stranger(address), at: now)
        }
        for used in 0..<4 {
            #expect(limits.solutionsUsed(app: app, account: bob, from: address, at: now) == used)
            #expect(limits.startSolved(app: app, account: bob, from: address, at: now).isAllowed)
        }
        #expect(limits.solutionsUsed(app: app, account: bob, from: address, at: now) == nil)
        #expect(limits.solutionsUsed(app: app, account: bob, at: now) == 4)
        // A solution that another start used meanwhile costs its address, and the account nothing.
        let other = try #require(ClientAddress([203, 0, 113, 2]))
        guard case .allowed(let receipt) = limits.startSolved(app: app, account: bob, from: other, at: now)
        else {
            Issue.record("counted")
            return
        }
        limits.refundAllButAddress(receipt, at: now)
        #expect(limits.solutionsUsed(app: app, account: bob, at: now) == 4)
        let more = (0..<4).count { _ in
            limits.startSolved(app: app, account: bob, from: other, at: now).isAllowed
        }
        #expect(more == 3)
    }

    @Test("a hundred subscribers with proofs of unknown devices do not keep known ones of their /48 out")
    func lookUps() throws {
        let limits = LoginLimits()
        for second in 0..<600 {
            let time = now + Int64(second) * 1_000
            for subscriber in 0..<100 {
                let address = try address(site: 1, household: UInt8(subscriber), 1)
                for _ in 0..<2 { _ = limits.start(.deviceProof, from: address, at: time) }
            }
        }
        let owner = try address(site: 1, household: 200, 1)
        #expect(limits.start(.deviceProof, from: owner, at: now + 599_000).isAllowed)
        // Proofs that do not hold are counted by device and /48.
        let device = [UInt8](repeating: 1, count: 32)
        func check(_ device: [UInt8], site: UInt8, _ last: UInt8) throws -> Bool {
            let address = try address(site: site, household: last, 1)
            return limits.startProof(app: app, account: bob, of: device, from: address, at: now).isAllowed
        }
        #expect(try (0..<100).count { try check(device, site: 1, UInt8($0)) } == 60)
        #expect(try check(device, site: 2, 1))
        #expect(try check([UInt8](repeating: 2, count: 32), site: 1, 1))
    }

    @Test("a verified login is refunded to every network")
    func networkRefunds() throws {
        let limits = LoginLimits(rules())
        for last in 0..<100 {
            guard
                case .allowed(let receipt) = limits.start(
                    app: app, account: bob, from: try stranger(site: 1, household: 1, UInt8(last)), at: now)
            else {
                Issue.record("counted")
                return
            }
            limits.refund(receipt, at: now)
        }
    }

    @Test("solved work opens a bucket of the account's own, which is bounded and costs an address more")
    func solved() throws {
        let limits = LoginLimits()
        let solver = try #require(ClientAddress([203, 0, 113, 1]))
        for last in 1...10 {
            _ = limits.start(app: app, account: bob, from: try stranger(UInt8(last)), at: now)
        }
        #expect(limits.solutionsUsed(app: app, account: bob, at: now) == 0)
        let outcomes = (0..<5).map { _ in
            limits.startSolved(app: app, account: bob, from: solver, at: now).isAllowed
        }
        #expect(outcomes == [true, true, true, true, false], "an address has 50, a solution costs 12")
        #expect(limits.solutionsUsed(app: app, account: bob, at: now) == 4)
        var allowed = 4
        for last in 2...40 as ClosedRange<UInt8> {
            let address = try #require(ClientAddress([203, 0, 113, last]))
            if limits.startSolved(app: app, account: bob, from: address, at: now).isAllowed { allowed += 1 }
        }
        #expect(allowed == 32)
        #expect(limits.solutionsUsed(app: app, account: bob, at: now) == nil)
        #expect(limits.solutionsUsed(app: app, account: bob, at: now + 60_000) == 31)
        let other = try AccountName(normalizing: "other")
        #expect(limits.solutionsUsed(app: app, account: other, at: now) == 0)
        // A verified login is refunded whole.
        let fresh = try #require(ClientAddress([203, 0, 113, 99]))
        for _ in 0..<20 {
            guard
                case .allowed(let receipt) = limits.startSolved(
                    app: app, account: other, from: fresh, at: now)
            else {
                Issue.record("counted")
                return
            }
            limits.refund(receipt, at: now)
        }
    }

    @Test("verified logins are never counted")
    func refunds() throws {
        let limits = LoginLimits(rules())
        for _ in 0..<100 {
            guard
                case .allowed(let receipt) = limits.start(
                    app: app, account: bob, from: try stranger(1), at: now)
            else {
                Issue.record("counted")
                return
            }
            limits.refund(receipt, at: now)
        }
    }

    @Test("the same name in another app is another account")
    func apps() throws {
        let limits = LoginLimits(rules())
        let other = try #require(AppName("other"))
        for last in 1...3 {
            _ = limits.start(app: app, account: bob, from: try stranger(UInt8(last)), at: now)
        }
        #expect(limits.start(app: other, account: bob, from: try stranger(5), at: now).isAllowed)
    }

    @Test("what a dead process had counted counts on")
    func restored() throws {
        let limits = LoginLimits(rules())
        for last in 1...3 {
            _ = limits.start(app: app, account: bob, from: try stranger(UInt8(last)), at: now)
        }
        _ = limits.start(app: app, account: bob, from: .knownDevice([1]), at: now)
        let snapshots = limits.snapshots(at: now)
        let again = try LoginLimits(rules(), restoring: snapshots, at: now + 1_000)
        #expect(
            again.start(app: app, account: bob, from: try stranger(4), at: now + 1_000)
                == .retry(after: 59, for: .account))
        #expect(again.start(app: app, account: bob, from: .knownDevice([1]), at: now + 1_000).isAllowed)
        #expect(
            again.start(app: app, account: bob, from: .knownDevice([1]), at: now + 1_000) == .retry(after: 29)
        )
        #expect(again.snapshots(at: now).keys.count == LoginLimits.Kind.allCases.count)
    }

    @Test("a snapshot that is not whole is not taken")
    func damaged() throws {
        let limits = LoginLimits(rules())
        _ = limits.start(app: app, account: bob, from: try stranger(1), at: now)
        let good = limits.snapshots(at: now)
        let bytes = try #require(good[.account])
        #expect(bytes.count == 84)
        var damaged = (0..<bytes.count).map { Array(bytes[..<$0]) }
        damaged.append(bytes + [0])
        for bit in 0..<bytes.count * 8 {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            damaged.append(flipped)
        }
        for bytes in damaged {
            var snapshots = good
            snapshots[.account] = bytes
            #expect(throws: LimitTable.SnapshotError.self) {
                try LoginLimits(rules(), restoring: snapshots, at: now)
            }
        }
        for kind in LoginLimits.Kind.allCases {
            var missing = good
            missing[kind] = nil
            #expect(throws: LimitTable.SnapshotError.malformed) {
                try LoginLimits(rules(), restoring: missing, at: now)
            }
        }
        var larger = rules()
        larger.capacity *= 2
        #expect(throws: LimitTable.SnapshotError.otherShape) {
            try LoginLimits(larger, restoring: good, at: now)
        }
    }

    @Test("who is one caller", arguments: addressTable)
    func addresses(_ row: (address: [UInt8], bytes: [UInt8]?)) {
        #expect(ClientAddress(row.address.span)?.bytes == row.bytes)
    }
}

extension ClientAddress {
    fileprivate init?(_ bytes: [UInt8]) { self.init(bytes.span) }
}

extension LoginLimits.Decision {
    fileprivate var isAllowed: Bool { if case .allowed = self { true } else { false } }
}

private let network: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 1, 2, 3, 4]

private let addressTable: [(address: [UInt8], bytes: [UInt8]?)] = [
    ([192, 0, 2, 1], [192, 0, 2, 1]), (network + [0, 0, 0, 0, 0, 0, 0, 1], network),
    (network + [9, 9, 9, 9, 9, 9, 9, 9], network),
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1], [192, 0, 2, 1]),
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 192, 0, 2, 1], [0, 0, 0, 0, 0, 0, 0, 0]), ([], nil),
    ([1, 2, 3], nil), ([UInt8](repeating: 1, count: 15), nil), ([UInt8](repeating: 1, count: 17), nil),
]
