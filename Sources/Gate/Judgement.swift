import CountersignSchemes
import CountersignWire

/// What the gate has found out about one request: each step is recorded once, by ``Gate``, and read afterwards by whoever
/// answers, explains, counts or logs. A request that was refused has the steps up to the one that refused it.
///
/// Safe to hand over: from ``Gate/begin()`` to ``Gate/end(_:)`` it belongs to one request, whose code runs on one thread at
/// a time.
package final class Judgement: @unchecked Sendable {
    /// The steps, in the order in which they are taken.
    package enum Step: UInt8, Comparable, Sendable, CaseIterable {
        case authority, claim, key, signature, policy, freshness, release, body, replay, session, device
        /// All of them were passed.
        case end

        package static func < (left: Step, right: Step) -> Bool { left.rawValue < right.rawValue }
    }

    /// The step that is being taken, or at which the request was refused.
    package internal(set) var step = Step.authority
    /// Which schemes have left signs in the request; nil before it was looked at.
    package internal(set) var traces: SchemeTraces?
    package internal(set) var claim: Claim?
    /// The key that the claim names, rightly or not, and whose it is.
    package internal(set) var candidate: Candidate?
    /// The key under which the signature holds; nil before that is known, and where it does not.
    package internal(set) var signer: SigningKey?
    /// What is to be told to the caller of its version; nil for nothing.
    package internal(set) var update: UpdateNotice?
    /// What the head has proved, until the rest of the request is judged.
    var fresh: Fresh?
    /// The same of a request that bears a token and no signature.
    var token: TokenProof?
    /// The same of a request that bears an upload ticket.
    var ticket: UploadTicketProof?
    /// The release that a request without a signature comes from: by what it says, or by its ticket.
    package internal(set) var tokenRelease: ReleaseKey?
    /// The live session whose token or ticket such a request bears.
    package internal(set) var bearing: Session?
    /// Whether a trusted proxy stands between the client and us, so that its `X-Forwarded-Proto` is believed.
    package var isProxied = false
    /// Nil while it has not been refused.
    package internal(set) var refusal: Refusal?

    init() {}

    // MARK: What the gate records

    /// Before anything is judged: how a refusal is answered depends on it.
    func look(for schemes: Registry, in request: Request, _ keys: KeyRing) throws(Refusal) -> SchemeTraces {
        let found = schemes.traces(in: request, formBodies: try keys.formBodies(of: request))
        traces = found
        return found
    }

    /// Once a form body has come that was not there when the head was judged: nobody may sign in both.
    func lookAgain(for schemes: Registry, in request: Request) throws(Refusal) {
        guard let before = traces, before.names.isBodyUnread, request.isBodyWhole, let claim else { return }
        let found = schemes.traces(in: request)
        traces = found
        guard let second = found.second(beside: claim) else { return }
        throw Refusal(
            .malformed, "signs of two schemes, \(claim.scheme.rawValue) and \(second.rawValue); expected one")
    }

    func note(_ claim: Claim, _ candidate: Candidate) {
        self.claim = claim
        self.candidate = candidate
    }

    func reset() {
        step = .authority
        traces = nil
        claim = nil
        candidate = nil
        signer = nil
        update = nil
        fresh = nil
        token = nil
        ticket = nil
        tokenRelease = nil
        bearing = nil
        isProxied = false
        refusal = nil
    }
}

extension Judgement {
    /// Whether any scheme has left a trace in it, well signed or badly.
    package var isSigned: Bool { traces?.areSigned ?? false }

    /// Whether no scheme but message-signatures has left a trace in it.
    package var isOfMessageSignatures: Bool { traces?.areOfMessageSignatures ?? false }

    /// How to answer the request, whatever becomes of it.
    package var dialect: AnswerDialect { traces?.dialect ?? .problem }

    /// The release whose key the request names, rightly or not; nil where there is none. Its policy says how exact a
    /// refusal is, and the meter counts it there.
    package var release: ReleaseKey? { candidate?.release ?? tokenRelease }

    /// What the request names as its key; nil where there is none of that name.
    package var keyID: KeyID? { candidate.flatMap { $0.isNobodys ? nil : claim?.keyID } }

    /// The session whose key the request names, rightly or not.
    package var session: Session? { candidate?.session }

    /// Whether the request was refused because its signature is wrong, its key id is unknown, or the token or
    /// ticket that it bears without a signature is unknown.
    package var failedVerification: Bool {
        guard signer == nil, let refusal else { return false }
        return refusal.code == .badSignature || refusal.code == .unknownKey
            || (refusal.code == .sessionEnded || refusal.code == .badTicket) && step == .key
    }

    /// The request key of the session whose MAC held: an answer under it tells the caller, and nobody else, that it is
    /// ours. Never a release's secret. That one is in every copy of the app, so an answer under it could be anybody's.
    package var shared: Credentials? {
        guard let claim, claim.scheme == .messageSignatures, let signer, signer.publicKey == nil,
            candidate?.session?.kind == .device
        else { return nil }
        return Credentials(keyID: claim.keyID, key: signer)
    }
}
