@testable import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Synchronization
import Testing

@testable import CountersignServer

/// A clock that a test sets.
final class TestClock: TimeSource {
    private let seconds: Atomic<Int64>

    init(_ now: Int64) { seconds = Atomic(now) }

    var now: Int64 {
        get { seconds.load(ordering: .relaxed) }
        set { seconds.store(newValue, ordering: .relaxed) }
    }
}

/// Writes immediately, like a server's writer without its thread.
struct DirectWriter: StoreWriter {
    let store: any Store

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        do {
            return try change(store)
        } catch {
            throw Refusal(.unavailable, detail: error.message)
        }
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        try? change(store)
    }
}

/// An authority in this process: a server's gate, routes and signed responses, without sockets.
final class TestServer {
    static let authority = "api.example.com"

    let clock: TestClock
    let deployment: Deployment
    let accounts: AccountSubsystem
    let gate: Gate
    let release: Credentials
    /// Another release of the same app.
    let otherRelease: Credentials
    /// A release of an app with accounts of its own.
    let otherApp: Credentials
    private let folder: String
    private let routes: RouteTable

    init(
        policy settings: [String] = ["registration=open"], logins: LoginSettings = .unlimited,
        now: Int64 = 1_800_000_000
    ) throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        clock = TestClock(now)
        let data = try DataFolder(folder, absence: .create)
        let store = StorePlace.sqlite(path: data.database).open()
        deployment = try Deployment(
            folder: data, store: store,
            environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)],
            clock: clock)
        release = try TestServer.release(deployment, "demo", "r_first", settings, now)
        otherRelease = try TestServer.release(deployment, "demo", "r_second", nil, now)
        otherApp = try TestServer.release(deployment, "other", "r_other", settings, now)
        let replay = try ReplayFile(path: data.replay, expecting: nil, now: now - 3_600)
        let keys = try ReleaseKeyDirectory(deployment)
        let writer = DirectWriter(store: store)
        let sessions = try SessionService(
            SessionDirectory(
                deployment, keys: keys,
                reader: StorePlace.sqlite(path: data.database).open(authenticatingBy: deployment.rows),
                writer: writer),
            deployment: deployment, writer: writer, replay: replay, log: nil)
        gate = Gate(
            allowedHosts: AllowedHosts([TestServer.authority]), keys: keys, sessions: sessions.live,
            replay: replay,
            clock: clock)
        accounts = try AccountSubsystem(
            settings: logins, deployment: deployment, sessions: sessions, writer: writer, replay: replay,
            log: nil, clock: clock)
        routes = RouteTable(prefix: "/countersign/v1", routes: accounts.routes)
    }

    deinit {
        accounts.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func release(
        _ deployment: Deployment, _ app: String, _ id: String, _ settings: [String]?, _ now: Int64
    ) throws -> Credentials {
        let app = try #require(AppName(app))
        if let settings { _ = try deployment.addApp(app, settings: settings, requiring: .signed, at: now) }
        let keyID = try #require(KeyID(id))
        let secret = Secret(random: 32)
        _ = try deployment.addRelease(
            ReleaseDraft(
                app: app, platform: try #require(Platform("ios")),
                version: try #require(Version(settings == nil ? "2.0" : "1.0")), scheme: .messageSignatures,
                id: keyID,
                secret: secret),
            at: now)
        return Credentials(keyID: keyID, key: SigningKey(secret))
    }

    /// What an answer says.
    struct Reply {
        var status: Int
        var fields: [ServerResponse.Field]
        var body: [UInt8]
        var refusal: Refusal?
        var signer: Credentials?

        subscript(name: String) -> String? {
            guard let document = try? JSONReader.read(body) else { return nil }
            return document.root[name]?.string
        }

        func bytes(_ name: String) -> [UInt8]? { self[name].flatMap { Base64.decode($0, as: .url) } }
    }

    /// A call from `peer`, signed by `credentials`, as a gateway takes it.
    func call(
        _ path: String, _ body: JSONValue, as credentials: Credentials? = nil,
        from peer: String = "192.0.2.1:50000",
        over transport: Request.Transport = .tls
    ) async throws -> Reply {
        var draft = Draft(
            method: "POST", target: Array("/countersign/v1/\(path)".utf8), authority: TestServer.authority,
            transport: transport)
        draft.body = Array(body.text.utf8)
        let nonce = Base64.encode(SystemRandom().bytes(16).span, as: .url)
        try MessageSignatures().sign(&draft, as: credentials ?? release, at: clock.now, nonce: nonce)
        return try await call(draft.request(), from: peer)
    }

    private func call(_ request: Request, from peer: String) async throws -> Reply {
        guard case .route(let route, let parameter) = routes.find(request) else {
            throw OperationalError(.failed, message: "no route: \(request.text(request.path))")
        }
        var generator = SplitMix64(seed: 1)
        let event = EventID(&generator)
        do {
            let caller = try await gate.judge(request)
            let answered = try await route.answer(
                RouteCall(
                    request: request, caller: caller, address: ClientAddress(NetworkAddress(withPort: peer)),
                    event: event, parameter: parameter, now: clock.now))
            let answer = answered.answer
            return Reply(
                status: answer.status, fields: answer.fields, body: answer.body, signer: answered.signer)
        } catch {
            let answer = RefusalResponse.make(
                error, dialect: .problem, disclosure: .code, event: event, now: clock.now)
            return Reply(status: answer.status, fields: answer.fields, body: answer.body, refusal: error)
        }
    }
}

extension LoginSettings {
    /// For tests of everything else.
    static var unlimited: LoginSettings {
        var settings = LoginSettings()
        settings.account = RateLimit(burst: 1_000_000, refillInterval: .seconds(1))
        settings.address = settings.account
        settings.device = settings.account
        settings.work = settings.account
        return settings
    }
}

extension TestServer {
    /// Changes the account like an administrator, without an audit record.
    func change(_ name: AccountName, _ change: AccountChange) throws {
        let app = try #require(AppName("demo"))
        let account = try #require(try deployment.store.account(name, of: app))
        let draft = deployment.auditDraft(for: .accountLock, on: .account(name, of: app))
        _ = try deployment.store.change(
            account.number, if: .anything, applying: change, at: clock.now, recording: draft)
    }
}
