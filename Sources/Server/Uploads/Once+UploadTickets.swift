import CountersignAuthority
import CountersignGate
import CountersignWire

/// Sees to it that an upload ticket is used once. Source: docs/protocol.md, "Upload tickets".
extension Once {
    /// Forgotten in one transaction, which other writers wait for.
    private static let ticketsAtOnce = 500

    /// Claims the ticket, durably, before the backend hears of the upload; answers the number of the attempt.
    nonisolated(nonsending) func claim(_ ticket: UploadTicket, at now: Int64) async throws(Refusal) -> Int {
        let id = ticket.id
        let claim = try await writer.write { (store) throws(Fault) in try store.claimUploadTicket(id, at: now)
        }
        switch claim {
        case .yes(let attempt): return attempt
        case .used(let time): throw ticket.used(at: time)
        case .worn:
            throw Refusal(.badTicket, "the upload ticket was tried \(UploadTicket.mostAttempts) times")
        case .over: throw Refusal(.badTicket, "the upload ticket ran out, or its session has just ended")
        }
    }

    /// After the backend cannot have had the whole upload: the ticket may be used again. Where the store
    /// fails, it stays used.
    nonisolated(nonsending) func abandon(_ ticket: UploadTicket, attempt: Int) async {
        let id = ticket.id
        try? await writer.write { (store) throws(Fault) in try store.abandonUploadTicket(id, attempt: attempt)
        }
    }

    /// In bites, between which others write; `time` is in whole Unix seconds.
    static func forgetUploadTickets(expiredBefore time: Int64, _ writer: any StoreWriter) {
        writer.writeLater { (store) throws(Fault) in
            let forgotten = try store.forgetUploadTickets(expiredBefore: time, limit: ticketsAtOnce)
            if forgotten == ticketsAtOnce { forgetUploadTickets(expiredBefore: time, writer) }
        }
    }
}
