import CountersignSchemes
import CountersignWire

/// Says that the head of a request is the one that an upload ticket of a live session was issued for. Only
/// ``UploadTickets`` can make one, and it can be used once. Whether the ticket is still unused is decided by
/// the store, when it is claimed.
package struct UploadTicketProof: ~Copyable, Sendable {
    let release: ReleaseKey
    let session: Session
    /// With the ticket. Held by reference, so that judgements of other requests carry no room for it.
    let withheld: WithheldToken
    /// The fields that the ticket names.
    let coveredFields: FieldSet
    var body: BodyExpectation {
        .digests(
            sha256: withheld.ticket.flatMap { ShortBytes($0.upload.sha256.span) } ?? ShortBytes(), sha512: nil
        )
    }

    fileprivate init(
        _ ticket: UploadTicket, of session: Session, _ release: ReleaseKey, covering fields: FieldSet
    ) {
        self.session = session
        self.release = release
        withheld = WithheldToken(fields: [], ticket: ticket)
        coveredFields = fields
    }
}

/// Judges requests that bear an upload ticket in place of a signature. Source: docs/protocol.md, "Upload
/// tickets"; decision 0047.
struct UploadTickets: Sendable {
    private let keys: KeyRing
    private let sessions: any SessionSource

    init(_ keys: KeyRing, sessions: any SessionSource) {
        self.keys = keys
        self.sessions = sessions
    }

    /// Whose upload it is; nil while its body is awaited, where the head gives no reason to refuse it: then
    /// it is asked again, all of it, once the body is there. What is found out is noted in `judgement`.
    /// `network` is where the client calls from; `now` is in whole Unix seconds.
    nonisolated(nonsending) func prove(
        _ request: Request, _ judgement: Judgement, from network: () -> [UInt8], for destination: Destination,
        at now: Int64
    ) async throws(Refusal) -> UploadTicketProof? {
        guard !judgement.isSigned else {
            throw Refusal(.malformed, "a signature and an upload ticket; expected one of them")
        }
        guard destination == .backend else {
            throw Refusal(.forbidden, "an upload ticket is for routes of the backend")
        }
        judgement.step = .key
        guard let field = request.value(of: FieldName.countersignTicket) else {
            throw Refusal(.malformed, "Countersign-Ticket: expected once")
        }
        let (ticket, session) = try await find(request.head.span.extracting(field.range))
        let release = try await release(of: ticket)
        judgement.tokenRelease = release
        if session.isAlive(at: now) { judgement.bearing = session }
        judgement.step = .policy
        try release.checkAllowed()
        guard release.policy.uploadTickets > 0 else {
            throw Refusal(.forbidden, "app \(release.app) allows no upload tickets (policy upload-tickets)")
        }
        try ticket.check(request)
        judgement.step = .freshness
        guard now < ticket.expires else {
            throw Refusal(
                .badTicket, "the upload ticket ran out at \(CivilTime.internetText(ticket.expires))")
        }
        judgement.step = .release
        judgement.update = try Releases().check(release, in: session, .changes, from: network, at: now)
        judgement.step = .replay
        if let claimed = ticket.claimed { throw ticket.used(at: claimed) }
        judgement.step = .session
        try Sessions.check(session, of: release, at: now)
        judgement.step = .device
        guard try release.policy.routes.decision(for: request).level < .device else {
            throw Refusal(.deviceUnsigned, "an upload ticket is not the device's signature")
        }
        guard request.bodyState != .awaited else { return nil }
        return UploadTicketProof(ticket, of: session, release, covering: ticket.covered(in: request))
    }

    nonisolated(nonsending) private func find(
        _ text: Span<UInt8>
    ) async throws(Refusal) -> (UploadTicket, Session) {
        let found: (UploadTicket, Session)?
        do throws(Fault) {
            found = try await sessions.uploadTicket(text)
        } catch {
            throw Refusal(.unavailable, "upload tickets: \(error.message)", retryAfter: 5)
        }
        guard let found else { throw Refusal(.badTicket, "no upload ticket is known by this text") }
        return found
    }

    nonisolated(nonsending) private func release(
        of ticket: UploadTicket
    ) async throws(Refusal) -> ReleaseKey {
        let release: ReleaseKey?
        do throws(Fault) {
            release = try await keys.release(of: ticket.release)
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
        guard let release else {
            throw Refusal(.badTicket, "release \(ticket.release) of the ticket is gone")
        }
        return release
    }
}

extension UploadTicket {
    /// Of a ticket that was claimed at that time, whole Unix seconds.
    package func used(at time: Int64) -> Refusal {
        Refusal(.replayed, "the upload ticket was used at \(CivilTime.internetText(time))")
    }

    /// The fields of `request` that the ticket vouches for.
    fileprivate func covered(in request: Request) -> FieldSet {
        guard upload.contentType != nil,
            let index = request.fields.firstIndex(where: { $0.known == .contentType })
        else { return .only([]) }
        return .only(FieldMask(index))
    }
}
