import CountersignGate
import CountersignHandshake
import CountersignMemory
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

/// A login that one node has started is finished at another, once, and what the store has of it tells neither
/// its keys nor whether there is such an account.
@Suite struct SharedPendingLoginsTests {
    /// A store in memory, which a test may alter.
    private final class Table: SharedLoginStore {
        let rows = Locked<[[UInt8]: PendingLoginRow]>([:])

        func addPendingLogin(_ row: PendingLoginRow, milliseconds: Int64, capacity: Int) {
            rows.with { $0[row.id] = row }
        }

        func takePendingLogin(_ id: [UInt8]) -> [UInt8]? { rows.with { $0.removeValue(forKey: id)?.sealed } }
        func expirePendingLogins() {}
        func debitLogins(_ charges: [SharedCharge]) -> SharedDebitOutcome { .allowed(at: 0) }
        func refundLogins(_ debits: [SharedDebit]) {}
        func loginLimits(at places: [SharedLimitPlace]) -> (now: Int64, fullAt: [Int64]) { (0, []) }
        func expireLoginLimits() {}
    }

    private let folder = TemporaryFolder()
    private let table = Table()
    private let nodes: [SharedPendingLogins]
    private let keys: AccountKeys

    init() throws {
        let deployment = try deployment(folder.data)
        keys = try AccountKeys(deployment)
        nodes = [
            try SharedPendingLogins(keys, in: table, capacity: 8),
            try SharedPendingLogins(AccountKeys(deployment), in: table, capacity: 8),
        ]
    }

    private func login(_ client: borrowing ClientLogin, account: Int64?, session: SessionID? = nil) throws
        -> PendingLogin
    {
        let signing = try PrivateKey(random: .ecdsaP256)
        let device = Device(
            signingKey: try #require(P256Point(subjectPublicKeyInfo: signing.publicKey.der)),
            agreementKey: try AgreementKey().publicPoint, kind: .tablet,
            name: try #require(Device.Name("Käthes Gerät")), keyStorage: .software)
        let app = try #require(AppName("demo"))
        let binding = LoginBinding(
            app: "demo", account: try AccountName(normalizing: "käthe"), release: "r_1", device: device)
        let start = try LoginStart(
            ke1: client.ke1.bytes, binding: binding, of: app, changingPasswordOf: session)
        let credential = [UInt8](repeating: 3, count: StoredRegistration.credentialCount)
        let server = try ServerLogin(
            start.ke1, record: keys.keys.fakeRecord, credential: credential,
            as: try #require(binding.parties), context: .empty, keys: keys.keys)
        let decision = LoginLimits().start(
            app: app, account: binding.account, from: .stranger(.unknown), at: 0)
        guard case .allowed(let receipt) = decision else { throw Login.wrongCredentials }
        return PendingLogin(
            server, start: start, account: account, credential: credential, receipt: receipt)
    }

    private func client() throws -> ClientLogin {
        try ClientLogin(try #require(Password(Secret(random: 8))))
    }

    @Test func isFinishedAtAnotherNode() throws {
        let bytes = [UInt8](repeating: 9, count: 16)
        let session = SessionID(bytes.span)
        for (account, session) in [(nil, nil), (7, nil), (7, session)] as [(Int64?, SessionID?)] {
            let begun = try login(try client(), account: account, session: session)
            let state = try #require(begun.state)
            let id = try nodes[0].add(begun, of: .address(.unknown), at: 100)
            #expect(id.count == PendingLogins.idCount)
            let taken = try #require(try nodes[1].take(id, at: 159))
            #expect(taken.account == account && taken.session == session && taken.purpose == begun.purpose)
            #expect(taken.ke1 == begun.ke1 && taken.ke2 == begun.ke2 && taken.credential == begun.credential)
            #expect(taken.app == begun.app && taken.receipt == begun.receipt)
            #expect(taken.binding.device == begun.binding.device && taken.binding.release == "r_1")
            #expect(taken.binding.account == begun.binding.account && taken.binding.app == "demo")
            let same = try #require(taken.state).withExposedBytes { taken in
                state.withExposedBytes { ConstantTime.equals($0, taken) == .equal }
            }
            #expect(same)
            #expect(try nodes[0].take(id, at: 159) == nil, "it is taken once")
        }
    }

    @Test func hasOneSizeWithAndWithoutAnAccount() throws {
        for account in [nil, 1, Int64.max] {
            _ = try nodes[0].add(login(client(), account: account), of: .address(.unknown), at: 100)
        }
        #expect(Set(table.rows.with { $0.values.map(\.sealed.count) }).count == 1)
    }

    @Test("a row that was altered, copied to another id, or kept beyond its time is no login")
    func isBoundToItsRow() throws {
        func added() throws -> (id: [UInt8], row: PendingLoginRow) {
            table.rows.with { $0 = [:] }
            let id = try nodes[0].add(login(client(), account: 1), of: .address(.unknown), at: 100)
            return (id, try #require(table.rows.with { $0.values.first }))
        }
        let (first, copied) = try added()
        let (second, row) = try added()
        table.rows.with { $0[row.id]?.sealed = copied.sealed }
        #expect(try nodes[1].take(second, at: 101) == nil)
        let (third, altered) = try added()
        table.rows.with { $0[altered.id]?.sealed[40] ^= 1 }
        #expect(try nodes[1].take(third, at: 101) == nil)
        table.rows.with { $0 = [copied.id: copied] }
        #expect(try nodes[1].take(first, at: 162) == nil)
        table.rows.with { $0 = [copied.id: copied] }
        #expect(try nodes[1].take(first, at: 161) != nil, "another node's clock may be a second behind")
    }

    @Test func holdersAreNotNamed() throws {
        let bytes: [UInt8] = [192, 0, 2, 1]
        let address = ClientAddress(bytes.span) ?? .unknown
        for _ in 0..<2 { _ = try nodes[0].add(login(client(), account: 1), of: .address(address), at: 100) }
        _ = try nodes[1].add(login(client(), account: 1), of: .device(bytes), at: 100)
        let holders = table.rows.with { $0.values.map(\.holder) }
        #expect(Set(holders).count == 2)
        #expect(holders.allSatisfy { $0.count == 16 && !$0.starts(with: bytes) })
    }
}
