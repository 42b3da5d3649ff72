import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization
import Testing

/// Sessions in a table; uses are counted.
final class SessionTable: SessionSource {
    private let sessions: [SessionToken: (Session, SigningKey)]
    private let device: P256Point?
    private let uses = Atomic(0)

    /// `device` verifies what the device of each of them signs.
    init(_ sessions: [SessionToken: (Session, SigningKey)], device: P256Point? = nil) {
        self.sessions = sessions
        self.device = device
    }

    var useCount: Int { uses.load(ordering: .relaxed) }

    func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)? {
        sessions[token]
    }
    func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? { nil }
    func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? { device }
    func noteUse(of session: Session, at now: Int64) { uses.add(1, ordering: .relaxed) }
}

/// An app with releases on two platforms, another app, and one session in two epochs.
struct SessionScene {
    static let id = SessionID([UInt8](0..<16).span)
    let folder: Folder
    let gate: Gate
    let sessions: SessionTable
    let key = SigningKey(secret("the request key of epoch 3"))
    let nextKey = SigningKey(secret("the request key of epoch 4"))
    let release = SigningKey(secret("the release's key"))

    init(
        expires: Int64 = .max, idleEnd: Int64 = .max, end: SessionTermination? = nil,
        retired: AppRelease.Retirement? = nil,
        kind: Session.Kind = .device, device: P256Point? = nil,
        policy change: (inout Policy) -> Void = { _ in }
    ) throws {
        let id = try #require(SessionScene.id)
        var policy = Policy()
        policy.schemes = [.messageSignatures, .authV1]
        change(&policy)
        var releases: [KeyID: AppRelease] = [:]
        for (name, app, platform, scheme) in [
            ("r_ios", "shop", "ios", SchemeName.messageSignatures),
            ("r_android", "shop", "android", .messageSignatures),
            ("r_bank", "bank", "ios", .messageSignatures), ("r_query", "shop", "ios", .authV1),
            ("r_old", "shop", "ios", .messageSignatures),
        ] {
            let keyID = try #require(KeyID(name))
            releases[keyID] = AppRelease(
                id: keyID, app: app, platform: platform, version: "1.0", scheme: scheme, policy: policy,
                retirement: name == "r_old" ? retired : nil, key: release)
        }
        func session(_ epoch: UInt32) -> Session {
            Session(
                id: id, kind: kind, epoch: epoch,
                account: AccountIdentity(number: 7, userID: nil, escapedName: "alice"),
                app: "shop",
                platform: "ios", expires: expires, idleEnd: idleEnd, end: end)
        }
        sessions = SessionTable(
            [
                SessionToken(id: id, epoch: 3): (session(3), key),
                SessionToken(id: id, epoch: 4): (session(4), nextKey),
            ], device: device)
        folder = try Folder()
        gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority]), keys: KeyTable(keys: releases),
            sessions: sessions,
            replay: try ReplayFile(path: folder.path + "/replay", expecting: nil, now: Deployment.now),
            clock: FixedTime(now: Deployment.now))
    }

    static func token(_ epoch: UInt32 = 3) throws -> SessionToken {
        SessionToken(id: try #require(id), epoch: epoch)
    }

    func request(
        epoch: UInt32 = 3, from release: String = "r_ios", key: SigningKey? = nil, nonce: String = "n",
        target: String = "/call", _ change: (inout Draft) throws -> Void = { _ in }
    ) throws -> Request {
        let keyID = try #require(KeyID(release))
        let signer = Credentials(try SessionScene.token(epoch), key: key ?? self.key, release: keyID)
        var draft = Draft(method: "GET", target: Array(target.utf8), authority: Deployment.authority)
        try MessageSignatures().sign(&draft, as: signer, at: Deployment.now, nonce: nonce)
        try change(&draft)
        return draft.request()
    }

    func releaseRequest(_ target: String, nonce: String = "n") throws -> Request {
        let keyID = try #require(KeyID("r_ios"))
        var draft = Draft(method: "GET", target: Array(target.utf8), authority: Deployment.authority)
        try MessageSignatures().sign(
            &draft, as: Credentials(keyID: keyID, key: release), at: Deployment.now, nonce: nonce)
        return draft.request()
    }

    func refusal(
        of request: Request, for destination: RequestDestination = .backend, from network: [UInt8] = []
    ) async -> Refusal? {
        do {
            _ = try await gate.judge(request, from: { network }, for: destination)
            return nil
        } catch {
            return error
        }
    }
}

@Suite struct SessionGateTests {
    @Test("a session's request is let in, once, with its account")
    func once() async throws {
        let scene = try SessionScene()
        let request = try scene.request()
        let caller = try await scene.gate.judge(request)
        #expect(caller.session?.id == SessionScene.id && caller.session?.account.subject == "name:alice")
        #expect(caller.release.id == KeyID("r_ios"))
        #expect(scene.sessions.useCount == 1)
        #expect(await scene.refusal(of: request)?.code == .replayed)
        #expect(scene.sessions.useCount == 1, "a refused request is no use")
    }

    @Test(
        "the release beside the token: of the session's app and platform", arguments: ["r_android", "r_bank"])
    func otherReleases(_ release: String) async throws {
        let refusal = try await SessionScene().refusal(of: SessionScene().request(from: release))
        #expect(
            refusal?.code == .badSignature
                && refusal?.detail.hasPrefix("countersign-release: \(release)") == true)
    }

    @Test("and one of message-signatures that there is", arguments: ["r_query", "r_nobody"])
    func noReleases(_ release: String) async throws {
        let refusal = try await SessionScene().refusal(of: SessionScene().request(from: release))
        #expect(refusal?.code == .badSignature)
        #expect(refusal?.detail == "countersign-release: \(release) is no release of message-signatures")
    }

    @Test("a release that is changed or missing on the way does not hold")
    func changedRelease() async throws {
        let scene = try SessionScene()
        let other = try scene.request(nonce: "a") { $0.setField("Countersign-Release", to: "r_old") }
        #expect(await scene.refusal(of: other)?.code == .badSignature)
        let twice = try scene.request(nonce: "b") {
            $0.fields.append(Draft.Field(name: "Countersign-Release", value: "r_ios"))
        }
        #expect(await scene.refusal(of: twice)?.code == .badSignature)
    }

    @Test("nobody but the holder of the key learns that there is such a session")
    func wrongKey() async throws {
        let scene = try SessionScene(end: SessionTermination(.replaced, at: 5, by: "tablet"))
        let refusal = try await scene.refusal(of: scene.request(key: scene.release))
        #expect(refusal?.code == .badSignature && refusal?.endedSession == nil)
    }

    @Test(
        "what is no token, and tokens that nobody has, are alike",
        arguments: [
            "s_", "s_x", "s_AAECAwQFBgcICQoLDA0ODw", "s_AAECAwQFBgcICQoLDA0ODw.9",
            "s_AAECAwQFBgcICQoLDA0ODw.03",
        ])
    func unknown(_ text: String) async throws {
        let scene = try SessionScene()
        var signer = Credentials(keyID: try #require(KeyID(text)), key: scene.key)
        signer.release = KeyID("r_ios")
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: Deployment.authority)
        try MessageSignatures().sign(&draft, as: signer, at: Deployment.now, nonce: "n")
        #expect(await scene.refusal(of: draft.request())?.code == .unknownKey)
    }

    @Test("a renewed key brings no nonce back")
    func nonceOfAnotherEpoch() async throws {
        let scene = try SessionScene()
        #expect(try await scene.refusal(of: scene.request(nonce: "same")) == nil)
        let renewed = try scene.request(epoch: 4, key: scene.nextKey, nonce: "same")
        #expect(await scene.refusal(of: renewed)?.code == .replayed)
        #expect(
            try await scene.refusal(of: scene.releaseRequest("/", nonce: "same")) == nil,
            "another's nonce is another")
    }

    @Test("an ended session says how it ended")
    func ended() async throws {
        let scene = try SessionScene(end: SessionTermination(.replaced, at: 5, by: "tablet"))
        let refusal = try await scene.refusal(of: scene.request())
        #expect(refusal?.code == .sessionEnded)
        #expect(refusal?.endedSession == Refusal.EndedSession(reason: "replaced", at: 5, by: "tablet"))
        #expect(scene.sessions.useCount == 0)
    }

    @Test("a token that ran out is renewed; a session that was idle is over")
    func times() async throws {
        let now = Deployment.now
        for (expires, idleEnd, code) in [
            (now, Int64.max, Refusal.Code.tokenExpired), (now + 1, .max, nil), (now, now, .sessionEnded),
            (now + 1, now + 1, nil),
        ] as [(Int64, Int64, Refusal.Code?)] {
            let scene = try SessionScene(expires: expires, idleEnd: idleEnd)
            #expect(try await scene.refusal(of: scene.request())?.code == code)
        }
    }

    @Test("a retired release is told to update, in a session too")
    func retired() async throws {
        let scene = try SessionScene(retired: AppRelease.Retirement(at: 1, updateURL: "https://u.example"))
        #expect(try await scene.refusal(of: scene.request(from: "r_old"))?.code == .updateRequired)
    }

    @Test("answers to a session's callers are signed under its key")
    func standing() async throws {
        let scene = try SessionScene(end: SessionTermination(.revoked, at: 5))
        let judgement = try await scene.gate.judgement(of: scene.request())
        #expect(judgement.responseCredentials?.keyID == KeyID(try SessionScene.token()))
        #expect(judgement.responseCredentials?.key === scene.key)
        #expect(judgement.release?.id == KeyID("r_ios"))
    }
}
