import ClientFakes
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient
import CountersignTransport

/// Bearer sessions: the servers that tokens are sent to, and the events that end a session.
@Suite struct BearerTests {
    private func device() throws -> Device.Name {
        guard let name = Device.Name("test") else { throw FakeAuthority.Problem.broken }
        return name
    }

    private func logIn(_ server: FakeBearers) async throws {
        let password = Secret(copying: Array("correct horse".utf8).span)
        _ = try await PasswordLogIn(server.installation, environment: server.environment)(
            AccountName(normalizing: "alice"), password: password, on: .desktop, named: device())
    }

    private func get(_ server: FakeBearers, _ target: String = "/orders") async throws
        -> VerifiedResponse
    {
        let draft = Draft(method: "GET", target: Array(target.utf8), authority: server.installation.host)
        return try await SignedCalls(server.installation, environment: server.environment).send(draft)
    }

    /// The authority's signature proves the sender of the response only after a secret was sent, so the
    /// client sends secrets only to a pinned certificate or where the app permits any valid one.
    @Test func secretsGoToNobodyWhoseCertificateIsNotNamed() async throws {
        let server = try FakeBearers()
        server.installation.channel = .open
        await #expect { try await logIn(server) } throws: { error in
            guard case ClientOperationError.certificateNotPinned = error else { return false }
            return true
        }
        server.installation.channel = .pinned
        server.installation.transport = .plain
        await #expect { try await logIn(server) } throws: { error in
            guard case ClientOperationError.incomplete = error else { return false }
            return true
        }
        #expect(server.seen.isEmpty)
        server.installation.transport = .tls
        try await logIn(server)
        let before = server.seen.count
        server.installation.channel = .open
        server.runOut()
        await #expect(throws: ClientOperationError.self) { try await get(server) }
        #expect(server.seen.count == before)
        server.installation.bearerSecrets = .toAnyCertificateThatVerifies
        #expect(try await get(server).response.status == 200)
        #expect(server.renewals == 1)
        // Nor does a log-out send the token there; it is told once the certificate is good.
        server.installation.bearerSecrets = .onlyToThePinnedCertificate
        let asked = server.seen.count
        let outcome = try await LogOut(server.installation, environment: server.environment)()
        guard case .toldLater = outcome else { throw FakeAuthority.Problem.broken }
        #expect(server.seen.count == asked)
    }

    @Test func aLoginByPasswordTellsWhatWasToBeTold() async throws {
        let server = try FakeBearers()
        try await logIn(server)
        server.installation.channel = .open
        guard case .toldLater = try await LogOut(server.installation, environment: server.environment)()
        else {
            throw FakeAuthority.Problem.broken
        }
        server.installation.channel = .pinned
        try await logIn(server)
        await server.keeper.logOuts.settle(within: .seconds(10))
        #expect(server.seen.count { $0.hasSuffix("/logout") } == 1)
        #expect(try server.state.pendingLogOuts.isEmpty && server.state.login != nil)
    }

    /// While the response is in transit, another process renews the tokens; the old tokens are refused for
    /// good, but the session continues.
    @Test func aLateAnswerDoesNotEndARenewedSession() async throws {
        let server = try FakeBearers()
        try await logIn(server)
        server.meanwhile = { server in
            for _ in 0..<2 {
                server.runOut()
                _ = try? await SignedCalls(server.installation, environment: server.environment).send(
                    Draft(method: "GET", target: Array("/other".utf8), authority: server.installation.host))
            }
        }
        #expect(try await get(server).response.status == 200)
        #expect(server.renewals == 2)
        #expect(server.refusedForGood == 1)
        #expect(try server.state.login != nil)
        server.isOver = true
        await #expect { try await get(server) } throws: { error in
            guard case ClientOperationError.sessionEnded = error else { return false }
            return true
        }
        #expect(try server.state.login == nil)
    }

    /// With a pinned certificate and without the authority's key, the connection authenticates the responses.
    @Test func aPinnedConnectionVouchesWhereNoKeyIsKnown() async throws {
        let server = try FakeBearers()
        server.installation.authorityKey = nil
        try await logIn(server)
        server.runOut()
        #expect(try await get(server).response.status == 200)
        #expect(server.renewals == 1)
        server.runOut()
        server.isOver = true
        await #expect { try await get(server) } throws: { error in
            guard case ClientOperationError.sessionEnded = error else { return false }
            return true
        }
        #expect(try server.state.login == nil)
    }
}

/// An authority that knows one bearer session, of the protocol's text. Safe to share: one task at a time uses
/// it, and what is called from within is awaited.
private final class FakeBearers: Transport, @unchecked Sendable {
    private let store = MemoryVault()
    let keeper: StateKeeper
    private let time = FakeTime()
    private let key: PrivateKey
    var installation: Installation
    private(set) var seen: [String] = []
    private(set) var renewals = 0
    private(set) var refusedForGood = 0
    var isOver = false
    /// Called once, before the next call is judged.
    var meanwhile: ((FakeBearers) async -> Void)?
    private var serial = 0
    private var isOut = false

    init() throws {
        key = try PrivateKey(random: .ed25519)
        guard let id = KeyID("r_1") else { throw FakeAuthority.Problem.broken }
        installation = Installation(
            host: "api.example.com", transport: .tls,
            release: Credentials(keyID: id, key: SigningKey(Secret(random: 32))), userAgent: "test",
            channel: .pinned)
        installation.authorityKey = SigningKey(key.publicKey)
        keeper = StateKeeper(store.vault, item: try StateKeeper.item(host: installation.host, app: nil))
    }

    var environment: ClientEnvironment {
        ClientEnvironment(transport: self, keeper: keeper, time: time, random: SystemRandom())
    }

    /// The state in the vault.
    var state: PersistedState { get throws { try process().readVault() } }

    /// A new process without state in memory.
    private func process() throws -> StateKeeper {
        StateKeeper(store.vault, item: try StateKeeper.item(host: installation.host, app: nil))
    }

    func runOut() { isOut = true }

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        let target = String(decoding: draft.target, as: UTF8.self)
        seen.append(target)
        if !target.hasPrefix("/countersign/"), let event = meanwhile {
            meanwhile = nil
            await event(self)
        }
        do {
            return try answer(draft, target)
        } catch {
            throw TransportError(.connectionLost("\(error)"), fate: .outcomeUnknown)
        }
    }

    private func answer(_ draft: Draft, _ target: String) throws -> Response {
        if isOver { return try reply(401, ["code": "session-ended"], draft) }
        let session = Base64.encode([UInt8](repeating: 7, count: SessionID.count).span, as: .url)
        if target.hasSuffix("/login/password") { return try reply(200, tokens(session), draft) }
        if target.hasSuffix("/token") {
            let sent = try JSONReader.read(draft.body).root["login_token"]?.string
            guard sent == "l_token-\(serial)" else { return try reply(401, ["code": "session-ended"], draft) }
            renewals += 1
            serial += 1
            isOut = false
            return try reply(200, tokens(session), draft)
        }
        let field = draft.fields.first { $0.name == "Authorization" }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
        guard field == "Bearer b_token-\(serial)" else {
            refusedForGood += 1
            return try reply(401, ["code": "session-ended"], draft)
        }
        return isOut ? try reply(401, ["code": "token-expired"], draft) : try reply(200, ["ok": true], draft)
    }

    private func tokens(_ session: String) -> JSONValue {
        [
            "account": "alice", "session": .string(session), "token": .string("b_token-\(serial)"),
            "login_token": .string("l_token-\(serial)"), "expires": 1_800_007_200, "idle": 1_800_100_000,
            "slots": "single",
        ]
    }

    private func reply(_ status: Int, _ body: JSONValue, _ draft: Draft) throws -> Response {
        guard let own = KeyID(MessageSignatures.authorityKeyID) else { throw FakeAuthority.Problem.broken }
        let bytes = Array(body.text.utf8)
        let fields = try MessageSignatures().sign(
            status: status, body: bytes, answering: draft.request(),
            as: Credentials(keyID: own, key: SigningKey(key)), at: 1_800_000_000)
        return Response(status: status, fields: fields ?? [], body: bytes)
    }
}
