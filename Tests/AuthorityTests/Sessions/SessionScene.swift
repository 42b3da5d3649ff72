import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization
import Testing

@testable import CountersignAuthority

/// A clock that a test sets.
final class HandClock: TimeSource {
    private let seconds: Atomic<Int64>

    init(_ seconds: Int64) { self.seconds = Atomic(seconds) }

    var now: Int64 {
        get { seconds.load(ordering: .relaxed) }
        set { seconds.store(newValue, ordering: .relaxed) }
    }
}

/// A deployment with an app, its releases and accounts, and their sessions, over a store on disk. Its gate
/// reads the store on other threads, as where the store is a server.
final class SessionScene: Sendable {
    static let start: Int64 = 1_800_000_000
    static let authority = "api.example.com"

    let folder = TemporaryFolder()
    let clock = HandClock(SessionScene.start)
    let deployment: Deployment
    let app: AppName
    let keys: ReleaseKeyDirectory
    let live: SessionDirectory
    let life: SessionLifecycle
    let writer: GroupWriter
    let replay: ReplayFile
    let lookups: LoopSessionSource
    let gate: Gate
    private let reads: WorkPool

    /// `level` is what the backend's routes require.
    init(_ settings: [String] = [], requiring level: RouteRule.Level = .signed) throws {
        deployment = try AuthorityTests.deployment(folder.data)
        app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: settings, requiring: level, at: 5)
        for (id, platform) in [("r_ios", "ios"), ("r_android", "android")] {
            var release = try draft(app, id: id)
            release.platform = try #require(Platform(platform))
            _ = try deployment.addRelease(release, at: 6)
        }
        keys = try ReleaseKeyDirectory(deployment)
        let path = deployment.folder.database
        writer = try GroupWriter(StorePlace.sqlite(path: path).open(authenticatingBy: deployment.rows))
        live = try SessionDirectory(
            deployment, keys: keys,
            reader: StorePlace.sqlite(path: path).open(authenticatingBy: deployment.rows), writer: writer)
        replay = try ReplayFile(path: deployment.folder.replay, expecting: nil, now: SessionScene.start)
        life = SessionLifecycle(deployment, directory: live, writer: writer, replay: replay)
        reads = try WorkPool(WorkPool.Bounds(workers: 2, queue: 1_000), for: .storeReads)
        lookups = LoopSessionSource(live, reading: reads)
        gate = Gate(
            allowedHosts: AllowedHosts([SessionScene.authority]), keys: keys, sessions: lookups,
            replay: replay, lookups: lookups, clock: clock)
    }

    deinit {
        writer.stop()
        reads.stop()
    }

    var now: Int64 { clock.now }

    func release(_ id: String = "r_ios") throws -> AppRelease {
        let key = try keys.release(for: #require(KeyID(id)))
        return try #require(key)
    }

    func addAccount(_ name: String, credential: [UInt8] = [1]) throws -> Account {
        var account = AccountDraft(
            app: app, name: try AccountName(normalizing: name), created: 7, tombstones: nil)
        account.registration = StoredRegistration(credential: credential, sealedRecord: [1, 2])
        let recorded = deployment.auditDraft(for: .accountAdd, on: .account(account.name, of: app))
        guard case .yes(let added) = try deployment.store.insert(account, recording: recorded) else {
            throw OperationalError(.failed, message: "the name is taken")
        }
        return added
    }

    /// Signs in on a new device.
    func signIn(_ account: Account, _ device: TestDevice? = nil, from release: String = "r_ios") async throws
        -> TestSession
    {
        let device = try device ?? TestDevice()
        let keys = LoginKeys(sessionKey: Secret(random: 64))
        let release = try self.release(release)
        let proved = VerifiedLogin(
            account: account, credential: account.registration?.credential ?? [],
            binding: LoginBinding(
                app: app.description, account: account.name, release: release.id.description,
                device: device.device),
            keys: keys, receipt: .init())
        let opened = try await life.open(proved, from: release, at: now)
        return TestSession(device: device, release: release, token: opened.token, root: keys.root)
    }

    func row(_ id: SessionID) throws -> StoredSession { try #require(try deployment.store.session(id)) }

    func credentials(_ id: SessionID) throws -> DeviceCredentials {
        guard case .device(let device) = try row(id).credentials else {
            throw OperationalError(.failed, message: "a bearer")
        }
        return device
    }

    /// The refusal of a request of the session by the whole gate; nil if it is accepted.
    func refusal(of session: TestSession, nonce: String = "\(UInt64.random(in: 0...UInt64.max))") async throws
        -> Refusal?
    {
        let request = try session.request(at: now, nonce: nonce)
        do throws(Refusal) {
            _ = try await gate.judge(request)
            return nil
        } catch {
            return error
        }
    }

    /// A refresh whose response the client applies.
    func refresh(_ session: inout TestSession, attempt: [UInt8]? = nil, time: Int64? = nil)
        async throws(Refusal)
    {
        let renewed = try await answer(to: session, attempt: attempt, time: time)
        session.adopt(renewed)
    }

    /// The server's response to a refresh, which the client does not apply.
    func answer(
        to session: TestSession, attempt: [UInt8]? = nil, time: Int64? = nil
    ) async throws(Refusal) -> RenewedSession {
        try await life.refresh(session.refresh(attempt ?? newAttempt(), at: time ?? now), at: now)
    }

    func newAttempt() -> [UInt8] { SystemRandom().bytes(RefreshTranscript.attemptCount) }
}

/// A device with its two keys.
struct TestDevice: Sendable {
    let signing: PrivateKey
    let agreement: AgreementKey
    let device: Device
    /// Of the transcripts that it signs: a copy of a session on the same device goes on counting.
    let counter = RefreshCounter()

    init(_ kind: Device.Class = .phone) throws {
        signing = try PrivateKey(random: .ecdsaP256)
        agreement = try AgreementKey()
        device = Device(
            signingKey: try #require(P256Point(subjectPublicKeyInfo: signing.publicKey.der)),
            agreementKey: agreement.publicPoint, kind: kind,
            name: try #require(Device.Name("a \(kind.rawValue)")))
    }
}

/// The number of the transcripts that a device has signed.
final class RefreshCounter: Sendable {
    private let last = Atomic<Int64>(0)

    func next() -> Int64 { last.add(1, ordering: .relaxed).newValue }
}

/// The client's side of a session: its stored state, and the values derived from it.
struct TestSession: Sendable {
    let device: TestDevice
    var release: AppRelease
    var token: SessionToken
    var root: SessionRoot

    var key: SigningKey { SigningKey(root.requestKey) }

    func request(at now: Int64, nonce: String) throws -> Request {
        var draft = Draft(method: "GET", target: Array("/call".utf8), authority: SessionScene.authority)
        let signer = Credentials(token, key: key, release: release.id)
        try MessageSignatures().sign(&draft, as: signer, at: now, nonce: nonce)
        return draft.request()
    }

    /// `counter` is the device's next one unless another is given.
    func refresh(
        _ attempt: [UInt8], at time: Int64, counter: Int64? = nil,
        purpose: RefreshTranscript.Purpose = .renew
    ) -> RefreshRequest {
        let request = RefreshRequest(
            release: release, token: token, attempt: attempt, time: time,
            counter: counter ?? device.counter.next(),
            nonce: SystemRandom().bytes(RefreshTranscript.nonceCount), purpose: purpose, mac: [],
            signature: [])
        return signed(request)
    }

    /// The request with the signatures of this session and its device.
    func signed(_ request: RefreshRequest) -> RefreshRequest {
        var request = request
        let transcript = request.transcript
        let mac = root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        request.mac = mac.indices.map { mac[$0] }
        request.signature = device.signing.sign(transcript.span) ?? []
        return request
    }

    mutating func adopt(_ renewed: RenewedSession) {
        guard let ephemeral = P256Point(renewed.ephemeral),
            let agreed = try? device.agreement.sharedSecret(with: ephemeral)
        else {
            Issue.record("the ephemeral key is no point")
            return
        }
        root = root.next(agreed: agreed)
        token = renewed.token
    }
}
