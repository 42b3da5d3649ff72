import CountersignGate
import CountersignWire

/// Upload tickets and the sessions that asked for them, for the gate.
extension LiveSessions {
    nonisolated(nonsending) package func uploadTicket(
        _ text: Span<UInt8>
    ) async throws(Fault) -> (UploadTicket, Session)? { try find(uploadTicket: text) }

    /// The same, without suspending. The store is asked about tickets that we issued alone.
    package func find(uploadTicket text: Span<UInt8>) throws(Fault) -> (UploadTicket, Session)? {
        guard let token = UploadTicketToken(text), token.isIssued(under: uploadTicketKey) else { return nil }
        try follow()
        guard let ticket = try reader.uploadTicket(token.id),
            let (live, _) = shard(of: ticket.session).find(ticket.session)
        else { return nil }
        return (ticket, try session(holdingTicket: live))
    }

    /// It needs no token, so that none can run out: the session lives until it ends or is idle for too long.
    private func session(holdingTicket live: LiveSession) throws(Fault) -> Session {
        let place = places[live.place]
        guard let policy = try keys.policy(of: place.app), let account = try reader.account(live.account)
        else {
            throw Fault(.failed, "session \(live.id): its app or its account is not in the store")
        }
        return Session(
            id: live.id, kind: live.kind, epoch: 0, account: AccountIdentity(account),
            app: place.app.description,
            platform: place.platform.description, opening: live.opening, expires: .max,
            idleEnd: live.used.later(by: policy.sessionIdle), end: live.end)
    }
}
