import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Carries the copies of one of the app's requests, and keeps the stream of the last answer for whoever reads it.
final class CallTransport: Transport {
    /// How an answer is wanted.
    enum Reading: Sendable, Hashable {
        /// Whole, of so many bytes at most.
        case whole(limit: Int)
        /// As it comes. What is signed or refused is whole all the same, for it is judged before anybody reads it.
        case streamed
    }

    /// What was sent of a call so far, by whichever interceptor's wish.
    struct Trace: Sendable {
        var copies = 0
        /// Why another one follows, if one does.
        var before: CountersignEvent.Retry?
    }

    private struct State {
        var fields: [HeaderField] = []
        var rest: APIBytes?
    }

    private let carrier: any Carrier
    private let origin: Origin
    private let call: CountersignEvent.Call
    private let dialect: any CallDialect
    private let reading: Reading
    private let events: Broadcast<CountersignEvent>
    private let progress: @Sendable (TransferProgress) -> Void
    private let trace: Locked<Trace>
    private let state = Locked(State())

    init(
        _ core: ClientCore, _ call: CountersignEvent.Call, _ trace: Locked<Trace>, _ body: RequestBody,
        _ reading: Reading,
        _ progress: @escaping @Sendable (TransferProgress) -> Void
    ) {
        (carrier, origin, events) = (core.carrier, core.base.origin, core.events)
        (self.call, self.trace, self.reading, self.progress) = (call, trace, reading, progress)
        dialect = SignedDialect(body: body)
    }

    /// For a legacy client's calls. `streamed` is sent in place of what a draft has in memory.
    init(
        _ client: LegacyClient, _ call: CountersignEvent.Call, _ trace: Locked<Trace>, streamed: RequestBody?,
        _ reading: Reading, _ progress: @escaping @Sendable (TransferProgress) -> Void
    ) {
        (carrier, origin, events) = (client.carrier, client.base.origin, client.report.events)
        (self.call, self.trace, self.reading, self.progress) = (call, trace, reading, progress)
        dialect = LegacyDialect(streamed: streamed)
    }

    /// The last answer's fields as they came, and what is still to come of its body; nil where that was whole.
    func takeAnswer() -> (fields: [HeaderField], rest: APIBytes?) {
        state.with { state in
            defer { state.rest = nil }
            return (state.fields, state.rest)
        }
    }

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        // Nobody waits any more: another copy is nobody's wish.
        if Task.isCancelled { throw TransportProblem(TransportError(.cancelled, .notSent)) }
        let (copy, why) = trace.with { trace in
            trace.copies += 1
            defer { trace.before = nil }
            return (trace.copies, trace.copies == 1 ? nil : trace.before ?? .other)
        }
        state.with { $0.rest = nil }
        events.tell(.sent(call, copy: copy, because: why))
        do throws(TransportError) {
            let request = OutgoingRequest(draft, to: origin, body: dialect.body(of: draft))
            let answer = try await carrier.send(request, progress: progress)
            return try await read(answer)
        } catch {
            trace.with { $0.before = .lostAnswer }
            throw TransportProblem(error)
        }
    }

    private func read(_ answer: IncomingResponse) async throws(TransportError) -> Response {
        let fields = answer.fields.map(Draft.Field.init)
        state.with { $0.fields = answer.fields }
        guard case .whole(let limit) = reading else { return try await readAhead(answer, fields) }
        let body = try await answer.body.collect(upTo: limit)
        let response = Response(status: answer.status, fields: fields, body: body)
        remember(response)
        return response
    }

    private func readAhead(
        _ answer: IncomingResponse, _ fields: [Draft.Field]
    ) async throws(TransportError) -> Response {
        var body: [UInt8] = []
        var pieces = answer.body.makeAsyncIterator()
        var isWhole = false
        while !isWhole, dialect.needsMore(answer, body) {
            if let piece = try await pieces.next() { body += piece } else { isWhole = true }
        }
        var response = Response(status: answer.status, fields: fields, body: isWhole ? body : [])
        guard isWhole else {
            response.message.isBodyWhole = false
            let rest = APIBytes(after: body, answer.body)
            state.with { $0.rest = rest }
            return response
        }
        remember(response)
        return response
    }

    private func remember(_ response: Response) {
        guard let code = dialect.refusalCode(of: response) else { return }
        trace.with { $0.before = .refused(code: code) }
    }
}
