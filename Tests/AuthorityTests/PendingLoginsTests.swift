import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite struct PendingLoginsTests {
    private func login() throws -> PendingLogin {
        let signing = try PrivateKey(random: .ecdsaP256)
        let device = Device(
            signingKey: try #require(P256Point(subjectPublicKeyInfo: signing.publicKey.der)),
            agreementKey: try AgreementKey().publicPoint, kind: .phone,
            name: try #require(Device.Name("phone")))
        let app = try #require(AppName("demo"))
        let binding = LoginBinding(
            app: "demo", account: try AccountName(normalizing: "bob"), release: "r_1", device: device)
        let client = try ClientLogin(try #require(Password(Secret(random: 8))))
        let start = try LoginStart(ke1: client.ke1.bytes, binding: binding, of: app)
        let keys = try ServerKeys.random()
        let server = try ServerLogin(
            start.ke1, record: keys.fakeRecord, credential: [1], as: try #require(binding.parties),
            context: .empty,
            keys: keys)
        let limits = LoginLimits()
        guard
            case .allowed(let receipt) = limits.start(
                app: app, account: binding.account, from: .stranger(.unknown), at: 0)
        else { throw Login.wrongCredentials }
        return PendingLogin(server, start: start, account: nil, credential: [1], receipt: receipt)
    }

    private func address(_ number: Int) throws -> PendingLogin.Holder {
        let address = ClientAddress([10, 0, UInt8(number >> 8), UInt8(number & 255)].span)
        return .address(try #require(address))
    }

    @Test("a login is taken once, within a minute")
    func once() throws {
        let pending = PendingLogins(capacity: 8)
        let login = try login()
        let id = pending.add(login, of: try address(1), at: 100)
        #expect(pending.take(id, at: 159) === login)
        #expect(pending.take(id, at: 159) == nil)
        let late = pending.add(login, of: try address(1), at: 100)
        #expect(pending.take(late, at: 160) == nil)
        #expect(pending.take([UInt8](repeating: 0, count: 16), at: 100) == nil)
        #expect(pending.count == 0)
    }

    @Test("those whose time is over go, although nobody comes")
    func expiry() throws {
        let pending = PendingLogins(capacity: 8)
        let login = try login()
        for time in 0..<4 { _ = pending.add(login, of: try address(1), at: Int64(100 + time)) }
        pending.expire(at: 161)
        #expect(pending.count == 2)
        pending.expire(at: 1_000)
        #expect(pending.count == 0)
    }

    @Test("a flood from a few addresses pushes out its own, and nobody else's")
    func flood() throws {
        let pending = PendingLogins(capacity: 64)
        let login = try login()
        let quiet = try (0..<20).map { pending.add(login, of: try address($0), at: 100) }
        let device = pending.add(login, of: .device([1]), at: 100)
        for turn in 0..<10_000 { _ = pending.add(login, of: try address(1_000 + turn % 3), at: 100) }
        #expect(pending.count == 64)
        for id in quiet + [device] { #expect(pending.take(id, at: 101) != nil) }
        // There is room again, and the rest of the flood stays bounded.
        #expect(pending.count == 43)
    }

    @Test("logins that come and go for long leave nothing behind")
    func turnover() throws {
        let pending = PendingLogins(capacity: 16)
        let login = try login()
        let stays = pending.add(login, of: try address(1), at: 100)
        for turn in 0..<5_000 {
            let id = pending.add(login, of: try address(turn % 7), at: 100)
            #expect(pending.take(id, at: 100) != nil)
        }
        #expect(pending.remembered <= 4 * 16)
        #expect(pending.take(stays, at: 120) != nil)
    }
}
