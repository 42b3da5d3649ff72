import CountersignGate
import CountersignHTTP
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority
@testable import CountersignServer

/// A gateway in this process, called as the engine calls it: it takes exchanges, and signs its responses.
final class SessionServer {
    static let host = "api.example.com"
    static let environment = ["COUNTERSIGN_MASTER_KEY": String(repeating: "ab", count: 32)]

    let clock = TestClock(1_800_000_000)
    let deployment: Deployment
    let sessions: SessionService
    let release: AppRelease
    private let folder: String
    private let gateway: Gateway
    private let loop: EventLoop

    init(_ settings: [String] = ["slots=unlimited"]) throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        let data = try DataFolder(folder, absence: .create)
        let store = StorePlace.sqlite(path: data.database).open()
        deployment = try Deployment(
            folder: data, store: store,
            environment: SessionServer.environment,
            clock: clock)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: settings, requiring: .signed, at: clock.now)
        let id = try #require(KeyID("r_first"))
        _ = try deployment.addRelease(
            ReleaseDraft(
                app: app, platform: try #require(Platform("ios")), version: try #require(Version("1.0")),
                scheme: .messageSignatures, id: id, secret: Secret(random: 32)), at: clock.now)
        let keys = try ReleaseKeyDirectory(deployment)
        release = try #require(try keys.release(for: id))
        let replay = try ReplayFile(path: data.replay, expecting: nil, now: clock.now - 3_600)
        let writer = DirectWriter(store: store)
        sessions = try SessionService(
            SessionDirectory(
                deployment, keys: keys,
                reader: StorePlace.sqlite(path: data.database).open(authenticatingBy: deployment.rows),
                writer: writer),
            deployment: deployment, writer: writer, replay: replay, log: nil)
        loop = try EventLoop()
        gateway = Gateway(
            gate: Gate(
                allowedHosts: AllowedHosts([SessionServer.host]), keys: keys, sessions: sessions.live,
                replay: replay,
                clock: clock),
            signing: try ResponseSigner(deployment), backend: .echo,
            identity: CallerIdentityFields(
                AssertionIssuer(try AssertionKeys(deployment), issuer: "urn:us", audience: "urn:backend")),
            once: IdempotencyCoordinator(deployment, writer: writer, settings: IdempotencySettings()),
            routes: RouteTable(prefix: "/countersign/v1", routes: sessions.routes), limits: Limits(),
            tally: LoopRequestCounter(RequestMeter()),
            log: nil, tracer: LoopTracer(TraceRules(TraceSettings()), exportingTo: nil, seed: 2),
            traffic: TrafficControl(TrafficSettings(), counter: RateCounter()),
            clock: clock, seed: 1)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// A request and its response.
    struct Told {
        var request: Request
        var response: Response
        var status: Int
        var body: JSONDocument

        subscript(name: String) -> JSON? { body.root[name] }
        func number(_ name: String) -> Int? { self[name].flatMap { body.integer($0, in: 0...Int.max) } }
    }

    func call(
        _ method: String, _ target: String, as signer: Credentials, _ body: JSONValue? = nil
    ) async throws -> Told {
        try await send(signed(method, target, as: signer, body))
    }

    func signed(
        _ method: String, _ target: String, as signer: Credentials, _ body: JSONValue? = nil
    ) throws -> Request {
        var draft = Draft(method: method, target: Array(target.utf8), authority: SessionServer.host)
        if let body { draft.body = Array(body.text.utf8) }
        let nonce = Base64.encode(SystemRandom().bytes(16).span, as: .url)
        try MessageSignatures().sign(&draft, as: signer, at: clock.now, nonce: nonce)
        return draft.request()
    }

    func send(_ request: Request) async throws -> Told {
        var attachment: AnyObject?
        return try await send(request, over: &attachment)
    }

    /// `attachment` is the state of a connection between its requests.
    func send(_ request: Request, over attachment: inout AnyObject?) async throws -> Told {
        let exchange = HeldExchange(request, loop)
        exchange.attachment = attachment
        await gateway.handle(exchange)
        attachment = exchange.attachment
        let answer = try #require(exchange.answer)
        let fields = answer.fields.map { Draft.Field(name: $0.name, value: $0.value) }
        return Told(
            request: request, response: Response(status: answer.status, fields: fields, body: answer.body),
            status: answer.status, body: try JSONReader.read(answer.body))
    }

    /// Signs in an account, which is created if it does not exist.
    func signIn(_ name: String, claiming storage: KeyStorage? = nil) async throws -> SignedIn {
        let app = try #require(AppName("demo"))
        let name = try AccountName(normalizing: name)
        if try deployment.store.account(name, of: app) == nil {
            var draft = AccountDraft(app: app, name: name, created: clock.now, tombstones: nil)
            draft.registration = StoredRegistration(credential: [1], sealedRecord: [])
            _ = try deployment.store.insert(
                draft, recording: deployment.auditDraft(for: .accountAdd, on: .account(name, of: app)))
        }
        let account = try #require(try deployment.store.account(name, of: app))
        let signing = try PrivateKey(random: .ecdsaP256)
        let agreement = try AgreementKey()
        let device = Device(
            signingKey: try #require(P256Point(subjectPublicKeyInfo: signing.publicKey.der)),
            agreementKey: agreement.publicPoint, kind: .phone, name: try #require(Device.Name("a phone")),
            keyStorage: storage)
        let keys = LoginKeys(sessionKey: Secret(random: 64))
        let binding = LoginBinding(
            app: "demo", account: name, release: release.id.description, device: device)
        let opened = try await sessions.life.open(
            VerifiedLogin(account: account, credential: [1], binding: binding, keys: keys, receipt: .init()),
            from: release, at: clock.now)
        return SignedIn(
            token: opened.token, root: keys.root, signing: signing, agreement: agreement, release: release.id)
    }
}

/// A client's side of its session.
struct SignedIn {
    var token: SessionToken
    var root: SessionRoot
    let signing: PrivateKey
    let agreement: AgreementKey
    let release: KeyID

    var credentials: Credentials { Credentials(token, key: SigningKey(root.requestKey), release: release) }

    func refresh(
        at time: Int64, counter: Int64 = 1,
        attempt: [UInt8] = SystemRandom().bytes(RefreshTranscript.attemptCount)
    ) throws -> JSONValue {
        let nonce = SystemRandom().bytes(RefreshTranscript.nonceCount)
        let transcript = RefreshTranscript(
            app: "demo", release: release.description, token: token, attempt: attempt, time: time,
            counter: counter, nonce: nonce
        ).bytes
        let mac = root.requestKey.withExposedBytes { HMACSHA256(key: $0) }.authenticate(transcript.span)
        let made = signing.sign(transcript.span)
        let signature = try #require(made)
        return [
            "token": .string(token.description), "attempt": .string(Base64.encode(attempt.span, as: .url)),
            "time": .integer(time), "counter": .integer(counter),
            "nonce": .string(Base64.encode(nonce.span, as: .url)), "purpose": "renew",
            "mac": .string(Base64.encode(mac.span, as: .url)),
            "signature": .string(Base64.encode(signature.span, as: .url)),
        ]
    }
}

/// An exchange that records its response.
private final class HeldExchange: Exchange {
    var request: Request
    let loop: EventLoop
    let peer = "192.0.2.1:50000"
    var answer: ServerResponse?
    var answeredStatus: Int? { answer?.status }
    var answeredBytes: Int { answer?.body.count ?? 0 }
    let deliveryFailure: DeliveryFailure? = nil
    let upstreamNanoseconds: UInt64? = nil

    let source = AddressRecord(address: .unknown)
    private(set) var proof: CallerProof?
    let isOverloaded = false
    let isClientUnnamed = false
    var attachment: AnyObject?

    init(_ request: Request, _ loop: EventLoop) {
        self.request = request
        self.loop = loop
    }

    func attribute(to address: NetworkAddress) {}
    func checkOverload() throws(Refusal) {}
    func recordProof(_ proof: CallerProof) { self.proof = proof }
    func readWholeBody(atMost limit: Int) async throws(Refusal) {}
    func closeAfterAnswer() {}
    func respondAtOnce(_ response: ResponseBytes) -> Bool { false }
    func respond(_ answer: ServerResponse) async { if self.answer == nil { self.answer = answer } }

    func forward(_ forwarding: consuming ForwardedRequest, to pool: UpstreamPool) async throws(Refusal) {
        throw Refusal(.unavailable, detail: "this exchange has no connection to forward from")
    }

    func readArrivedBody(atMost limit: Int) throws(Refusal) -> Bool { true }

    func forward(
        _ forwarding: consuming ForwardedRequest, to pool: UpstreamPool,
        reportingTo observer: any ForwardObserver
    ) {}

    func goOn(with request: any SuspendedRequest) {}
}
