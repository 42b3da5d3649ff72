import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignMemory
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A clock that the schedule moves.
final class ModelClock: TimeSource {
    static let start: Int64 = 1_800_000_000

    private let seconds = Locked(ModelClock.start)

    var now: Int64 { seconds.with { $0 } }

    func pass(_ time: Int64) { seconds.with { $0 += time } }
}

/// The server: the real gate, session directory and refresh over a SQLite store. A crash loses what is not in
/// the store: the caches, first uses that were not written, and the replay entries.
final class ModelServer: @unchecked Sendable {
    static let authority = "api.example.com"
    static let prefix = "/countersign/v1"
    static let app = "demo"
    private static let secret = Array("the secret of the release".utf8)

    let clock = ModelClock()
    let release: Credentials
    let answerKey: PrivateKey
    private let appName: AppName
    private let deployment: Deployment
    private let store: any Store
    private let account: Account
    private var running: ServerParts

    /// The parts of the server that a crash loses.
    private struct ServerParts {
        let keys: ReleaseKeyDirectory
        let writer: ModelWriter
        let directory: SessionDirectory
        let lifecycle: SessionLifecycle
        let gate: Gate
    }

    /// `folder` holds the data folder.
    init(folder: String) throws(OperationalError) {
        let data = try DataFolder(folder, absence: .create)
        store = StorePlace.sqlite(path: data.database).open()
        deployment = try Deployment(folder: data, store: store, environment: [:])
        guard let app = AppName(ModelServer.app), let id = KeyID("r_model"), let platform = Platform("ios"),
            let version = Version("1.0"), let answerKey = try? PrivateKey(random: .ed25519),
            let name = try? AccountName(normalizing: "alice")
        else { throw OperationalError(.failed, message: "model: names") }
        appName = app
        self.answerKey = answerKey
        _ = try deployment.addApp(app, settings: ["slots=unlimited"], requiring: .signed, at: 1)
        _ = try deployment.addRelease(
            ReleaseDraft(
                app: app, platform: platform, version: version, scheme: .messageSignatures, id: id,
                secret: Secret(copying: ModelServer.secret.span)), at: 2)
        release = Credentials(
            keyID: id, key: SigningKey(Secret(copying: ModelServer.secret.span)))
        var draft = AccountDraft(app: app, name: name, created: 3, tombstones: nil)
        draft.registration = StoredRegistration(credential: [1], sealedRecord: [1, 2])
        guard
            case .yes(let account) = try store.insert(
                draft, recording: deployment.auditDraft(for: .accountAdd, on: .account(name, of: app)))
        else { throw OperationalError(.failed, message: "model: no account") }
        self.account = account
        running = try ModelServer.start(deployment, store, clock)
    }

    var accountName: AccountName { account.name }

    private static func start(
        _ deployment: Deployment, _ store: any Store, _ clock: ModelClock
    ) throws(OperationalError) -> ServerParts {
        let keys = try ReleaseKeyDirectory(deployment)
        let writer = ModelWriter(store)
        let directory = try SessionDirectory(deployment, keys: keys, reader: store, writer: writer)
        let replay = ModelReplay()
        let lifecycle = SessionLifecycle(deployment, directory: directory, writer: writer, replay: replay)
        let gate = Gate(
            allowedHosts: AllowedHosts([authority]), keys: keys, sessions: directory, replay: replay,
            clock: clock)
        return ServerParts(
            keys: keys, writer: writer, directory: directory, lifecycle: lifecycle, gate: gate)
    }

    /// First uses of renewed keys that a crash would lose now.
    var unsavedCount: Int { running.directory.unsavedCount }

    func crash() throws(OperationalError) { running = try ModelServer.start(deployment, store, clock) }

    /// Writes what waits to be written, as the timer does.
    func reconcile() throws(OperationalError) {
        running.writer.flush()
        try running.directory.reconcile()
    }

    func row(_ id: SessionID) throws(OperationalError) -> StoredSession? { try store.session(id) }

    func open(for device: Device) async throws(Refusal) -> (id: SessionID, root: SessionRoot) {
        let (id, root) = (running.lifecycle.newID(), LoginKeys(sessionKey: Secret(random: 64)).root)
        guard let platform = Platform("ios") else { throw Refusal(.malformed) }
        var credentials = DeviceCredentials(
            signingKey: device.signingKey.bytes, agreementKey: device.agreementKey.bytes,
            epochBegan: clock.now, sealedRoot: deployment.seal(root, of: id, in: appName, epoch: 0))
        credentials.release = release.keyID
        var session = StoredSession(
            id: id, account: account.number, app: appName, platform: platform, deviceClass: device.kind,
            deviceName: device.name.description, created: clock.now, credentials: .device(credentials))
        session.release = release.keyID
        _ = try await running.lifecycle.open(session, proving: [1], slots: .unlimited, at: clock.now)
        return (id, root)
    }

    /// Later than every time of the model.
    private static let late: TrustedTime? = {
        let passed = Locked<Int64>(0)
        let clock = TrustedClock { passed.with { ((1 << 40) * 1_000 + $0, $0) } }
        clock.begin(ClockTrust.Beginning())
        passed.with { $0 = ClockTrust.patience }
        return clock.sweepTime
    }()

    /// Ends and deletes the session: schedules share the store.
    func delete(_ id: SessionID) async throws(Refusal) {
        try await running.lifecycle.end(.one(id), with: SessionTermination(.signedOut, at: 0))
        do {
            guard let late = ModelServer.late else { return }
            _ = try store.forgetSessions(endedBefore: late, limit: 100)
        } catch { throw Refusal(error, in: "model") }
        running.directory.forget([id])
    }

    // MARK: Requests

    func answer(_ draft: Draft) async -> Response {
        let request = draft.request()
        let judgement = running.gate.beginJudgement()
        defer { running.gate.endJudgement(judgement) }
        let isRefresh = draft.target == Array("\(ModelServer.prefix)/token".utf8)
        let isLogOut = draft.target == Array("\(ModelServer.prefix)/logout".utf8)
        do throws(Refusal) {
            let caller = try await running.gate.judge(
                request, recordingIn: judgement,
                for: isRefresh ? .ownRoute : isLogOut ? .logOut : .backend)
            if isLogOut, let session = caller.session {
                try await running.lifecycle.end(
                    .one(session.id), with: SessionTermination(.signedOut, at: clock.now))
            }
            guard isRefresh else {
                return sign(["ok": true], status: 200, request, judgement.responseCredentials)
            }
            let renewed = try await running.lifecycle.refresh(
                ModelServer.refresh(in: draft.body, from: caller.release), at: clock.now)
            return sign(
                [
                    "token": .string(renewed.token.description),
                    "epoch": .integer(Int64(renewed.token.epoch)),
                    "ephemeral": .string(Base64.encode(renewed.ephemeral.span, as: .url)),
                    "expires": .integer(renewed.expires), "idle": .integer(renewed.idleEnd),
                ], status: 200, request, renewed.signer)
        } catch {
            return sign(
                members(of: error), status: error.code.status, request, judgement.responseCredentials)
        }
    }

    private func members(of refusal: Refusal) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [("code", .string(refusal.code.name))]
        if refusal.code == .stale { members.append(("time", .integer(clock.now))) }
        if let end = refusal.endedSession {
            members += [("reason", .string(end.reason)), ("at", .integer(end.at))]
        }
        if let progress = refusal.refreshProgress {
            members += [
                ("counter", .integer(progress.counter)), ("epoch", .integer(Int64(progress.epoch))),
                ("transcript", .string(Base64.encode(progress.transcript.span, as: .url))),
            ]
        }
        return .object(members)
    }

    private static func refresh(
        in body: [UInt8], from release: AppRelease
    ) throws(Refusal) -> RefreshRequest {
        let malformed = Refusal(.malformed, detail: "model: refresh")
        guard let document = try? JSONReader.read(body) else { throw malformed }
        func text(_ name: String) -> String? { document.root[name]?.string }
        func bytes(_ name: String) -> [UInt8]? { text(name).flatMap { Base64.decode($0, as: .url) } }
        func number(_ name: String) -> Int64? {
            document.root[name].flatMap { document.integer($0, in: 0...(1 << 53)) }.map(Int64.init)
        }
        guard let token = text("token").flatMap({ SessionToken($0) }), let attempt = bytes("attempt"),
            let time = number("time"), let counter = number("counter"), let nonce = bytes("nonce"),
            let purpose = text("purpose").flatMap(RefreshTranscript.Purpose.init), let mac = bytes("mac"),
            let signature = bytes("signature")
        else { throw malformed }
        return RefreshRequest(
            release: release, token: token, attempt: attempt, time: time, counter: counter, nonce: nonce,
            purpose: purpose, mac: mac, signature: signature)
    }

    private func sign(_ body: JSONValue, status: Int, _ request: Request, _ signer: Credentials?) -> Response
    {
        let bytes = Array(body.text.utf8)
        guard let own = KeyID(MessageSignatures.authorityKeyID),
            let fields = try? MessageSignatures().sign(
                status: status, body: bytes, answering: request,
                as: signer ?? Credentials(keyID: own, key: SigningKey(answerKey)), at: clock.now)
        else { return Response(status: status, fields: [], body: bytes) }
        return Response(status: status, fields: fields, body: bytes)
    }
}

/// Writes at once; what may be written later waits until it is flushed, and is lost by a crash.
final class ModelWriter: StoreWriter {
    private let store: any Store
    private let later = Locked<[@Sendable (any Store) throws(OperationalError) -> Void]>([])

    init(_ store: any Store) { self.store = store }

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        do {
            return try change(store)
        } catch { throw Refusal(error, in: "model") }
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        later.with { $0.append(change) }
    }

    func flush() {
        let changes = later.with { waiting in
            defer { waiting = [] }
            return waiting
        }
        for change in changes { try? change(store) }
    }
}

/// Replay entries in memory.
private final class ModelReplay: ReplayGuard {
    private struct Key: Hashable {
        let keyID: String
        let replayKey: [UInt8]

        init(_ entry: ReplayEntry) {
            keyID = entry.keyID.description
            let span = entry.replayKey.span
            replayKey = span.indices.map { span[$0] }
        }
    }

    private let entries = Locked<Set<Key>>([])

    func insert(_ entry: ReplayEntry) async throws(Refusal) { _ = try insertIfReady(entry) }

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        guard entries.with({ $0.insert(Key(entry)).inserted }) else { throw Refusal(.replayed) }
        return true
    }

    func lookUp(_ entry: ReplayEntry) throws(Refusal) {
        guard !entries.with({ $0.contains(Key(entry)) }) else { throw Refusal(.replayed) }
    }
}
