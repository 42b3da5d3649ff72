@testable import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSQLite
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

/// Writes at once: what a server's writer does, without its thread.
struct DirectWriter: StoreWriter {
    let store: any Store

    nonisolated(nonsending) func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(Fault) -> Result
    ) async throws(Refusal) -> Result {
        do throws(Fault) {
            return try change(store)
        } catch {
            throw Refusal(.unavailable, error.message)
        }
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(Fault) -> Void) { try? change(store) }
}

/// An authority in this process: gate, routes and signed answers as a server has them, without its sockets.
final class TestServer {
    static let authority = "api.example.com"

    let clock: TestClock
    let deployment: Deployment
    let accounts: Accounts
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
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)").path
        clock = TestClock(now)
        let data = try DataFolder(folder, absence: .makesOne)
        let store = SQLiteStore(path: data.database)
        deployment = try Deployment(
            folder: data, store: store, environment: ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)],
            clock: clock)
        release = try TestServer.release(deployment, "demo", "r_first", settings, now)
        otherRelease = try TestServer.release(deployment, "demo", "r_second", nil, now)
        otherApp = try TestServer.release(deployment, "other", "r_other", settings, now)
        let replay = try ReplayFile(path: data.replay, expecting: nil, now: now - 3_600)
        let keys = try LiveKeys(deployment)
        let writer = DirectWriter(store: store)
        let sessions = try SessionService(
            deployment, keys, reader: SQLiteStore(path: data.database), writer: writer, replay: replay, log: nil,
            clock: clock)
        gate = Gate(
            authorities: Authorities([TestServer.authority]), keys: keys, sessions: sessions.live, replay: replay,
            clock: clock)
        accounts = try Accounts(
            logins, deployment, sessions, writer: writer, replay: replay, log: nil, clock: clock)
        routes = RouteTable(prefix: "/countersign/v1", accounts.routes)
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
                version: try #require(Version(settings == nil ? "2.0" : "1.0")), scheme: .messageSignatures, id: keyID,
                secret: secret),
            at: now)
        return Credentials(keyID: keyID, key: SigningKey(secret))
    }

    /// What an answer says.
    struct Reply {
        var status: Int
        var fields: [Answer.Field]
        var body: [UInt8]
        var refusal: Refusal?
        var signer: Credentials?

        subscript(name: String) -> String? {
            guard let document = try? JSONReader.read(body) else { return nil }
            return document.root[name]?.string
        }

        func bytes(_ name: String) -> [UInt8]? { self[name].flatMap { Base64.decode($0, .url) } }
    }

    /// A call from `peer`, signed by `credentials`, as a gateway takes it.
    func call(
        _ path: String, _ body: JSONValue, as credentials: Credentials? = nil, from peer: String = "192.0.2.1:50000",
        over transport: Request.Transport = .tls
    ) async throws -> Reply {
        var draft = Draft(
            method: "POST", target: Array("/countersign/v1/\(path)".utf8), authority: TestServer.authority,
            transport: transport)
        draft.body = Array(body.text.utf8)
        let nonce = Base64.encode(SystemRandom().bytes(16).span, .url)
        try MessageSignatures().sign(&draft, as: credentials ?? release, at: clock.now, nonce: nonce)
        return try await call(draft.request(), from: peer)
    }

    private func call(_ request: Request, from peer: String) async throws -> Reply {
        guard case .route(let route, let parameter) = routes.find(request) else {
            throw Fault(.failed, "no route: \(request.text(request.path))")
        }
        var generator = EventGenerator(seed: 1)
        let event = EventID(&generator)
        do throws(Refusal) {
            let caller = try await gate.judge(request)
            let answered = try await route.answer(
                RouteCall(
                    request: request, caller: caller, address: ClientAddress(NetworkAddress(withPort: peer)),
                    event: event, parameter: parameter, now: clock.now))
            let answer = answered.answer
            return Reply(status: answer.status, fields: answer.fields, body: answer.body, signer: answered.signer)
        } catch {
            let answer = RefusalAnswer.make(error, dialect: .problem, .code, event: event, now: clock.now)
            return Reply(status: answer.status, fields: answer.fields, body: answer.body, refusal: error)
        }
    }
}

extension LoginSettings {
    /// For tests of everything else.
    static var unlimited: LoginSettings {
        var settings = LoginSettings()
        settings.account = Allowance(burst: 1_000_000, oneEach: .seconds(1))
        settings.address = settings.account
        settings.device = settings.account
        settings.work = settings.account
        return settings
    }
}

extension TestServer {
    /// As an administrator does it, but for the record of it.
    func change(_ name: AccountName, _ change: AccountChange) throws {
        let app = try #require(AppName("demo"))
        let account = try #require(try deployment.store.account(name, of: app))
        let draft = deployment.recording(.accountLock, .account(name, of: app))
        _ = try deployment.store.change(account.number, if: .anything, change, at: clock.now, recording: draft)
    }
}
