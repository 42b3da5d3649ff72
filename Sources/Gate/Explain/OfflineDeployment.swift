import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A deployment of one key and one policy for judging one request offline. The gate uses it like any other
/// deployment, so `verify` and `explain` refuse exactly what a gateway with this policy refuses.
struct OfflineDeployment: ReleaseSource, SessionSource {
    private let question: Explanation.Question
    private static let app = "offline"

    init(_ question: Explanation.Question) { self.question = question }

    func gate(for request: Request, schemes: SchemeRegistry) -> Gate {
        Gate(
            // Which hosts a deployment answers for is not asked offline.
            allowedHosts: AllowedHosts([request.text(request.authority)]), schemes: schemes, keys: self,
            sessions: self,
            replay: EmptyReplayGuard(),
            clock: FixedTime(now: question.at ?? signingTime(of: request, schemes: schemes)))
    }

    /// Tokens that the backend does not issue itself are looked up in a store, and there is no store here.
    var destination: RequestDestination {
        question.scheme != .messageSignatures && question.policy.legacySession == .authority
            ? .login : .backend
    }

    /// Where freshness is not asked about, the request is judged by the time at which it says it was signed.
    private func signingTime(of request: Request, schemes: SchemeRegistry) -> Int64 {
        var workspace = Workspace()
        let claim = try? schemes.scheme(named: question.scheme)?.claim(
            in: request, by: question.policy, workspace: &workspace)
        return claim?.created.instant(SchemePolicy(question.policy, scheme: question.scheme)) ?? 0
    }

    // MARK: Keys

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
        // A session's requests name a release beside their token; which one is not asked offline.
        guard question.keyID == nil || question.keyID == id || isSessionRequest else { return nil }
        return AppRelease(
            id: id, app: OfflineDeployment.app, platform: question.platform ?? "",
            version: question.version ?? "",
            scheme: question.scheme, policy: question.policy, retirement: question.retirement,
            key: question.key,
            nextKey: question.nextKey)
    }

    private var isSessionRequest: Bool { question.keyID.map { SessionToken($0.bytes) != nil } ?? false }

    // MARK: Sessions

    func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)? {
        guard question.keyID == nil || question.keyID == KeyID(token) else { return nil }
        return (session(token.id, kind: .device, epoch: token.epoch), question.key)
    }

    func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? {
        SessionID([UInt8](repeating: 0, count: SessionID.count).span).map {
            session($0, kind: .bearer, epoch: 0)
        }
    }

    func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? { nil }

    func noteUse(of session: Session, at now: Int64) {}

    private func session(_ id: SessionID, kind: Session.Kind, epoch: UInt32) -> Session {
        Session(
            id: id, kind: kind, epoch: epoch,
            account: AccountIdentity(number: 0, userID: nil, escapedName: ""),
            app: OfflineDeployment.app, platform: question.platform ?? "", expires: .max)
    }
}

/// Replays are not looked for offline: that takes a memory.
private struct EmptyReplayGuard: ReplayGuard {
    func insert(_ entry: ReplayEntry) async throws(Refusal) {}
    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool { true }
    func lookUp(_ entry: ReplayEntry) throws(Refusal) {}
}

private struct FixedTime: TimeSource {
    let now: Int64
}
