import CountersignGate
import CountersignSeal
import CountersignWire

/// The stored upload tickets, used and unused. A ticket is claimed once: of concurrent claims one succeeds.
package protocol UploadTicketStore: Sendable {
    /// Adds a ticket to a live session if there is room for it. Deletes the oldest used tickets of the
    /// account beyond ``UploadTicketBounds/mostUsed``. `now` is in whole Unix seconds.
    func add(
        _ ticket: UploadTicketRecord, within bounds: UploadTicketBounds, at now: Int64
    ) throws(OperationalError) -> UploadTicketAddOutcome

    func uploadTicket(_ id: UploadTicketID) throws(OperationalError) -> UploadTicketRecord?

    /// Durably marks a ticket as used, if it is unused, has not expired, was not tried too often, and its
    /// session is live.
    func claimUploadTicket(_ id: UploadTicketID, at now: Int64) throws(OperationalError) -> UploadTicketClaim

    /// Undoes that claim because the backend did not get the whole upload. Does nothing if the ticket was
    /// claimed again or is gone.
    func abandonUploadTicket(_ id: UploadTicketID, attempt: Int) throws(OperationalError)

    /// Deletes at most `limit` tickets that expired by that time, used or not; returns their number.
    func forgetUploadTickets(expiredBefore time: TrustedTime, limit: Int) throws(OperationalError) -> Int
}

/// The number of tickets that may be kept.
package struct UploadTicketBounds: Sendable, Equatable {
    /// Used tickets of an account, so that a second use is told from an unknown ticket.
    package static let mostUsed = 256
    /// The number of sessions of an account that may each have the full number of tickets.
    private static let fullSessions = 4

    /// Unused tickets of a session.
    package let ofSession: Int
    /// Unused tickets of an account.
    package var ofAccount: Int { ofSession * UploadTicketBounds.fullSessions }

    package init(ofSession: Int) { self.ofSession = ofSession }
}

package enum UploadTicketAddOutcome: Sendable, Equatable {
    case yes
    /// The session or its account has the maximum number of unused tickets.
    case full
    /// The session has ended.
    case sessionEnded
}

package enum UploadTicketClaim: Sendable, Equatable {
    /// The caller may use the ticket; `attempt` identifies this claim.
    case yes(attempt: Int)
    /// The ticket was claimed at that time, whole Unix seconds.
    case used(at: Int64)
    /// The ticket was tried too often.
    case exhausted
    /// The ticket is gone or has expired, or its session has ended.
    case over
}

/// Upload tickets and the sessions that requested them, for the gate.
extension SessionDirectory {
    package func uploadTicket(
        _ text: Span<UInt8>
    ) throws(OperationalError) -> (UploadTicketRecord, Session)? { try find(uploadTicket: text) }

    /// Whether the text can be a ticket of this deployment.
    func isIssued(uploadTicket text: Span<UInt8>) -> Bool {
        UploadTicketToken(text)?.isIssued(under: uploadTicketKey) ?? false
    }

    /// The same, without suspending. Only tickets that this deployment issued are looked up in the store.
    package func find(uploadTicket text: Span<UInt8>) throws(OperationalError) -> (
        UploadTicketRecord, Session
    )? {
        guard let token = UploadTicketToken(text), token.isIssued(under: uploadTicketKey) else { return nil }
        try refreshIfChanged()
        guard let ticket = try reader.uploadTicket(token.id),
            let known = shard(of: ticket.session).find(ticket.session),
            let live = try verified(known, reads: .allowed)
        else { return nil }
        return (ticket, try session(holdingTicket: live.session))
    }

    /// The session of a ticket. The ticket replaces the session's token, so no token can expire: the
    /// session is valid until it ends or becomes idle.
    private func session(holdingTicket live: SessionRecord) throws(OperationalError) -> Session {
        let place = appPlatforms[live.appPlatform]
        guard let policy = try keys.policy(of: place.app), let account = try reader.account(live.account)
        else {
            throw OperationalError(
                .failed, message: "session \(live.id): its app or its account is not in the store")
        }
        return Session(
            id: live.id, kind: live.kind, epoch: 0, account: AccountIdentity(account),
            app: place.app.description,
            platform: place.platform.description, loginKind: live.opening, expires: .max,
            idleEnd: policy.sessionEnd(used: live.used, created: live.created), created: live.created,
            // The request proves no possession of a key: the ticket alone suffices to send it.
            keyPossession: .none, end: live.end)
    }
}

/// Issuing of upload tickets. Source: docs/protocol.md, "Upload tickets".
extension SessionLifecycle {
    /// Issues a ticket to `session`, durable when this returns. `expires` and `now` are whole Unix seconds.
    /// Refuses with `too-many-attempts` if the session or its account has the maximum number of unused
    /// tickets.
    package func issueTicket(
        for upload: UploadDescription, to session: Session, from release: AppRelease, expires: Int64,
        at now: Int64
    ) async throws(Refusal) -> UploadTicketToken {
        guard let id = UploadTicketID(random.bytes(UploadTicketID.count)) else {
            throw Refusal(.unavailable, detail: "no random bytes for an upload ticket")
        }
        let ticket = UploadTicketRecord(
            id: id, session: session.id, account: session.account.number, release: release.id, upload: upload,
            created: now, expires: expires)
        let bounds = UploadTicketBounds(ofSession: release.policy.uploadTickets)
        let added = try await writer.write { (store) throws(OperationalError) in
            try store.add(ticket, within: bounds, at: now)
        }
        switch added {
        case .yes: return UploadTicketToken(id, under: directory.uploadTicketKey)
        case .full:
            throw Refusal(
                .tooManyAttempts,
                detail:
                    "at most \(bounds.ofSession) unused upload tickets of a session, or "
                    + "\(bounds.ofAccount) of an account, are allowed (policy upload-tickets)", retryAfter: 60
            )
        case .sessionEnded: throw Refusal(.sessionEnded, detail: "session \(session.id) has ended")
        }
    }
}
