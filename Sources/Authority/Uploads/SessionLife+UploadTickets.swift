import CountersignGate
import CountersignSeal
import CountersignWire

/// How upload tickets are issued. Source: docs/protocol.md, "Upload tickets".
extension SessionLife {
    /// A new ticket of `session`, durable when this returns. `expires` and `now` are whole Unix seconds.
    /// Refuses `too-many-attempts` where the session or its account has as many unused tickets as it may.
    nonisolated(nonsending) package func issueTicket(
        for upload: Upload, to session: Session, from release: ReleaseKey, expires: Int64, at now: Int64
    ) async throws(Refusal) -> UploadTicketToken {
        guard let id = UploadTicketID(random.bytes(UploadTicketID.count)) else {
            throw Refusal(.unavailable, "no random bytes for an upload ticket")
        }
        let ticket = UploadTicket(
            id: id, session: session.id, account: session.account.number, release: release.id, upload: upload,
            created: now, expires: expires)
        let bounds = UploadTicketBounds(ofSession: release.policy.uploadTickets)
        let added = try await writer.write { (store) throws(Fault) in
            try store.add(ticket, within: bounds, at: now)
        }
        switch added {
        case .yes: return UploadTicketToken(id, under: live.uploadTicketKey)
        case .full:
            throw Refusal(
                .tooManyAttempts,
                "\(bounds.ofSession) unused upload tickets of a session, or \(bounds.ofAccount) of an "
                    + "account, are the most (policy upload-tickets)", retryAfter: 60)
        case .sessionEnded: throw Refusal(.sessionEnded, "session \(session.id) has ended")
        }
    }
}
