import CountersignSchemes
import CountersignWire

/// States that the head of a request matches an upload ticket of a live session. Only
/// ``UploadTicketVerifier`` can make one, and it can be used once. The store decides whether the ticket is
/// still unused when the ticket is claimed.
package struct UploadTicketProof: ~Copyable, Sendable {
    let release: AppRelease
    let session: Session
    /// Contains the ticket. Held by reference, so that judgements of other requests need no space for it.
    let withheld: WithheldToken
    /// The fields that the ticket names.
    let coveredFields: FieldSet
    var body: BodyExpectation {
        .digests(
            sha256: withheld.ticket.flatMap { ShortBytes($0.upload.sha256.span) } ?? ShortBytes(), sha512: nil
        )
    }

    fileprivate init(
        _ ticket: UploadTicketRecord, of session: Session, release: AppRelease, covering fields: FieldSet
    ) {
        self.session = session
        self.release = release
        withheld = WithheldToken(fields: [], ticket: ticket)
        coveredFields = fields
    }
}

/// Judges requests that bear an upload ticket in place of a signature. Source: docs/protocol.md, "Upload
/// tickets"; decision 0047.
struct UploadTicketVerifier: Sendable {
    private let keys: KeyRing
    private let sessions: any SessionSource

    init(_ keys: KeyRing, sessions: any SessionSource) {
        self.keys = keys
        self.sessions = sessions
    }

    /// The proof of the upload; nil if the body has not arrived and the head gives no reason to refuse. All
    /// checks run again once the body has arrived. Records its findings in `judgement`. `network` returns the
    /// client's network address; `now` is in whole Unix seconds.
    func prove(
        _ request: Request, recordingIn judgement: Judgement, from network: () -> [UInt8],
        for destination: RequestDestination,
        at now: Int64
    ) throws(Refusal) -> UploadTicketProof? {
        guard !judgement.isSigned else {
            throw Refusal(.malformed, detail: "a signature and an upload ticket; expected one of them")
        }
        guard destination == .backend else {
            throw Refusal(.forbidden, detail: "an upload ticket is for routes of the backend")
        }
        judgement.step = .key
        guard let field = request.value(of: FieldName.countersignTicket) else {
            throw Refusal(.malformed, detail: "Countersign-Ticket: expected once")
        }
        let (ticket, session) = try find(request.head.span.extracting(field.range))
        let release = try release(of: ticket)
        judgement.tokenRelease = release
        if session.isAlive(at: now) { judgement.tokenSession = session }
        judgement.step = .policy
        try release.checkAllowed()
        guard release.policy.uploadTickets > 0 else {
            throw Refusal(
                .forbidden, detail: "app \(release.app) allows no upload tickets (policy upload-tickets)")
        }
        try ticket.check(request)
        judgement.step = .freshness
        guard now < ticket.expires else {
            throw Refusal(
                .badTicket, detail: "the upload ticket expired at \(CivilTime.rfc3339Text(ticket.expires))",
                decidedAt: ticket.expires)
        }
        judgement.step = .release
        judgement.update = try ReleaseCheck().check(
            release, in: session, effect: .changes, from: network, at: now)
        judgement.step = .replay
        if let claimed = ticket.claimed { throw ticket.used(at: claimed) }
        judgement.step = .session
        try SessionCheck.check(session, of: release, at: now)
        judgement.step = .device
        guard try release.policy.routes.decision(for: request).level < .device else {
            throw Refusal(.deviceUnsigned, detail: "an upload ticket is not the device's signature")
        }
        guard request.bodyState != .awaited else { return nil }
        return UploadTicketProof(ticket, of: session, release: release, covering: ticket.covered(in: request))
    }

    private func find(
        _ text: Span<UInt8>
    ) throws(Refusal) -> (UploadTicketRecord, Session) {
        let found: (UploadTicketRecord, Session)?
        do {
            found = try sessions.uploadTicket(text)
        } catch {
            throw Refusal(error, in: "upload tickets")
        }
        guard let found else { throw Refusal(.badTicket, detail: "no upload ticket is known by this text") }
        return found
    }

    private func release(
        of ticket: UploadTicketRecord
    ) throws(Refusal) -> AppRelease {
        let release: AppRelease?
        do {
            release = try keys.release(of: ticket.release)
        } catch {
            throw Refusal(error, in: "keys")
        }
        guard let release else {
            throw Refusal(.badTicket, detail: "release \(ticket.release) of the ticket is gone")
        }
        return release
    }
}

extension UploadTicketRecord {
    /// The refusal of a ticket that was claimed at `time`, in whole Unix seconds.
    package func used(at time: Int64) -> Refusal {
        Refusal(.replayed, detail: "the upload ticket was used at \(CivilTime.rfc3339Text(time))")
    }

    /// The fields of `request` that the ticket covers.
    fileprivate func covered(in request: Request) -> FieldSet {
        guard upload.contentType != nil,
            let index = request.fields.firstIndex(where: { $0.known == .contentType })
        else { return .only([]) }
        return .only(FieldMask(index))
    }
}
