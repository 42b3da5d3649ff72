import CountersignGate
import CountersignHTTP
import CountersignWire

extension Gateway {
    /// To the backend, by a ticket that is claimed first. It stays used unless the backend cannot have had
    /// the whole upload, as with idempotency keys (decision 0019).
    func passUpload(
        by ticket: UploadTicket, _ exchange: any Exchange, _ request: Request, from caller: Caller,
        _ judgement: Judgement, _ event: EventID
    ) async throws(Refusal) {
        let attempt = try await once.claim(ticket, at: clock.now)
        if request.isBodyWhole { tally.acceptTicket(of: caller.release) }
        let progress = UploadProgress()
        let result: Result<Void, Refusal>
        do throws(Refusal) {
            result = .success(try await send(exchange, request, from: caller, judgement, event, progress))
        } catch {
            result = .failure(error)
        }
        if !progress.isReached { await once.abandon(ticket, attempt: attempt) }
        try result.get()
        // Of a body that streams, the last piece decides.
        if !request.isBodyWhole { tally.acceptTicket(of: caller.release) }
    }
}

/// Notes whether the backend can have had the whole upload. Confined to the loop of its exchange.
private final class UploadProgress: AnswerObserver {
    private(set) var isReached = false

    func mayBeDone() { isReached = true }
    // An answer that comes before the upload's end is an answer to it all the same.
    func didBegin(status: Int, fields: [AnswerField]) { isReached = true }
    func didRead(_ bytes: Span<UInt8>) {}
    func didEnd() {}
    var wantsRest: Bool { false }
}
