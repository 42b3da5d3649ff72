import CountersignSchemes
import CountersignWire
import Glibc
import Synchronization

/// The record of what the gate found out about one request. ``Gate`` records each step once; the response,
/// the explanation, the meter and the log read it. A refused request has the steps up to the refusal.
///
/// Safe to send: from ``Gate/beginJudgement()`` to ``Gate/endJudgement(_:)`` it belongs to one request, whose
/// code runs on one thread at a time.
package final class Judgement: @unchecked Sendable {
    /// The steps, in the order in which the gate takes them.
    package enum Step: UInt8, Comparable, Sendable, CaseIterable {
        case authority, claim, key, signature, policy, freshness, release, body, replay, session, device
        /// The request passed all steps.
        case end

        package static func < (left: Step, right: Step) -> Bool { left.rawValue < right.rawValue }
    }

    /// The current step, or the one at which the gate refused the request.
    package internal(set) var step = Step.authority
    /// The schemes whose signs the request bears; nil before detection.
    package internal(set) var detectedSchemes: DetectedSchemes?
    package internal(set) var claim: Claim?
    /// The claim of an earlier request, for reuse.
    var spareClaim: Claim?
    /// The caller of the request, or of an earlier one, for reuse.
    private var caller: Caller?
    /// The key that the claim names, with its owner; not yet proven.
    package internal(set) var verificationKey: VerificationKey?
    /// The key that verified the signature; nil before verification and if it failed.
    package internal(set) var signer: SigningKey?
    /// The notice about the caller's version to send with the response; nil for none.
    package internal(set) var update: UpdateNotice?
    /// The refusal that the route of the request only observes. The caller's proof is valid.
    var observed: Refusal.Code?
    /// The proof from the head, until the rest of the request is judged.
    var fresh: FreshProof?
    /// The complete proof while the replay guard must wait, and the workspace that its claim refers to.
    var waiting: ReplayAdmission?
    var lease: WorkspaceLease?
    /// Nil where the source of sessions reads the store itself.
    var early: EarlyLookup?
    /// What a ``DeferredLookup`` has found for this judgement.
    var finding: (any Sendable)?
    /// The same as `fresh` for a request that bears a token and no signature.
    var token: TokenProof?
    /// The same for a request that bears an upload ticket.
    var ticket: UploadTicketProof?
    /// The release of a request without a signature: the one that it states, or the one of its ticket.
    package internal(set) var tokenRelease: AppRelease?
    /// The live session whose token or ticket such a request bears.
    package internal(set) var tokenSession: Session?
    /// Whether the request came through a trusted proxy, whose `X-Forwarded-Proto` the gateway accepts.
    package var isProxied = false
    /// Nil unless the request was refused.
    package private(set) var refusal: Refusal? { didSet { hasRefusal = true } }
    /// Whether ``refusal`` has been set since the judgement began: to look at it costs more.
    private var hasRefusal = false

    init() {}

    // MARK: What the gate records

    /// Records the refusal and returns the refusal to throw. A verdict that depends on an untrusted clock
    /// becomes `unavailable`.
    func refuse(_ refusal: Refusal, by clock: any TimeSource) -> Refusal {
        let confirmed = clock.confirmed(refusal)
        self.refusal = confirmed
        return confirmed
    }

    /// Runs before any other step: the form of a refusal's response depends on it.
    func detect(_ schemes: SchemeRegistry, in request: Request, keys: KeyRing) throws(Refusal)
        -> DetectedSchemes
    {
        let found = schemes.detectSchemes(in: request, formBodies: try keys.formBodies(of: request))
        detectedSchemes = found
        return found
    }

    /// Detects signs of schemes in a form body that arrived after the head was judged. Refuses a request with
    /// signs of two schemes, one in the head and one in the body.
    func detectInBody(_ schemes: SchemeRegistry, in request: Request) throws(Refusal) {
        guard detectedSchemes?.names.isBodyUnread == true, request.isBodyWhole, let claim else { return }
        let found = schemes.detectSchemes(in: request)
        detectedSchemes = found
        guard let second = found.otherScheme(than: claim) else { return }
        throw Refusal(
            .malformed,
            detail: "signs of two schemes, \(claim.scheme.rawValue) and \(second.rawValue); expected one")
    }

    func record(_ claim: Claim, key candidate: VerificationKey) {
        self.claim = claim
        self.verificationKey = candidate
    }

    /// The caller of a request that has passed. Another request gets the same object only if nothing holds it
    /// any more.
    func admit(_ proof: consuming CompleteProof, session: Session?) -> Caller {
        if case .some = caller, isKnownUniquelyReferenced(&caller), let caller {
            caller.renew(proof, session: session, update: update)
            if let observed { caller.observed = observed }
            return caller
        }
        let caller = Caller(proof, session: session, update: update)
        if let observed { caller.observed = observed }
        self.caller = caller
        return caller
    }

    func reset() {
        step = .authority
        detectedSchemes = nil
        verificationKey = nil
        signer = nil
        // What most requests do not have is compared first, which costs less than to destroy nothing.
        if case .some = update { update = nil }
        if observed != nil { observed = nil }
        if fresh != nil { fresh = nil }
        if waiting != nil { waiting = nil }
        if case .some = lease { lease = nil }
        if case .some = early { early = nil }
        if case .some = finding { finding = nil }
        if token != nil { token = nil }
        if ticket != nil { ticket = nil }
        if case .some = tokenRelease { tokenRelease = nil }
        if case .some = tokenSession { tokenSession = nil }
        isProxied = false
        if hasRefusal { refusal = nil }
        hasRefusal = false
        // Proofs refer to the claim; by now there is none, unless a caller kept it.
        if spareClaim == nil, claim != nil, isKnownUniquelyReferenced(&claim) { swap(&claim, &spareClaim) }
        claim = nil
    }
}

extension Judgement {
    /// Whether the request bears signs of any scheme, valid or not.
    package var isSigned: Bool { detectedSchemes?.hasSignature ?? false }

    /// Whether the request bears signs of message-signatures and of no other scheme.
    package var isOfMessageSignatures: Bool { detectedSchemes?.hasOnlyMessageSignatures ?? false }

    /// The form of the response, accepted or refused.
    package var dialect: ResponseDialect { detectedSchemes?.dialect ?? .problem }

    /// The release that the request names, proven or not; nil if there is none. Its policy decides how
    /// detailed a refusal is, and the meter counts the request for it.
    package var release: AppRelease? { verificationKey?.release ?? tokenRelease }

    /// The key id that the request names; nil if no key has that id.
    package var keyID: KeyID? { verificationKey.flatMap { $0.isDecoy ? nil : claim?.keyID } }

    /// The session whose key the request names, proven or not.
    package var session: Session? { verificationKey?.session }

    /// Whether the request was refused because its signature is wrong, its key id is unknown, or the token or
    /// ticket that it bears without a signature is unknown.
    package var failedVerification: Bool {
        guard signer == nil, let code = refusal?.code else { return false }
        return code == .badSignature || code == .unknownKey
            || (code == .sessionEnded || code == .badTicket) && step == .key
    }

    /// The request key of the session whose MAC was verified. A response signed with it proves to this caller
    /// alone that the gateway sent it. Never a release's secret: every copy of the app contains that, so
    /// anyone could sign such a response.
    package var responseCredentials: Credentials? {
        guard let claim, claim.scheme == .messageSignatures, let signer, signer.publicKey == nil,
            verificationKey?.session?.kind == .device
        else { return nil }
        return Credentials(keyID: claim.keyID, key: signer)
    }
}

/// The workspace of one request while it is judged. A verdict that waits for a store keeps its workspace, so
/// two requests never share one.
///
/// Safe to send: between `take` and `put(back:)` exactly one request uses it.
final class WorkspaceLease: @unchecked Sendable {
    var workspace = Workspace()
    var recent = RecentReleases()
}

/// Keeps objects for reuse between requests, so that a verdict allocates none. Each loop has a gate of its
/// own, so threads do not contend for the lock.
final class ObjectPool<Object: AnyObject & Sendable>: Sendable {
    /// The address of one idle object, which this owns; 0 for none. An exchange passes the ownership on, so
    /// that no two threads get the same object. Most requests need no more than this.
    private let first = Atomic<UInt>(0)
    private let idle: Locked<[Object]>
    private let make: @Sendable () -> Object
    /// The pool frees objects beyond this number, so that a burst does not keep its memory forever.
    private let limit: Int

    init(limit: Int, make: @escaping @Sendable () -> Object) {
        self.limit = limit
        self.make = make
        var room: [Object] = []
        room.reserveCapacity(limit)
        idle = Locked(room)
    }

    deinit { _ = takeFirst() }

    func take() -> Object { takeFirst() ?? idle.with { $0.popLast() } ?? make() }

    func put(back object: consuming Object) {
        let owned = Unmanaged.passRetained(object)
        let address = UInt(bitPattern: owned.toOpaque())
        if first.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged { return }
        let rest = owned.takeRetainedValue()
        idle.with { if $0.count < limit { $0.append(rest) } }
    }

    private func takeFirst() -> Object? {
        guard let address = UnsafeRawPointer(bitPattern: first.exchange(0, ordering: .acquiring)) else {
            return nil
        }
        return Unmanaged<Object>.fromOpaque(address).takeRetainedValue()
    }
}
