import CountersignClient
import CountersignMemory
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Sends the copies of one of the app's requests, and keeps the stream of the last response for its reader.
final class CallTransport: Transport {
    /// How a response is read.
    enum Reading: Sendable, Hashable {
        /// Whole, at most this many bytes.
        case whole(limit: Int)
        /// As a stream. A signed response or a refusal is collected whole all the same, since the client
        /// judges it before the app reads it.
        case streamed
    }

    /// The copies of a call that were sent so far, whichever interceptor asked for them.
    struct Trace: Sendable {
        var copies = 0
        /// Why another copy follows, if one does.
        var before: CountersignEvent.Retry?
        /// When the first keyed copy that may have arrived was sent.
        var keyed: SendingTime?
    }

    private struct State {
        var fields: [HeaderField] = []
        var rest: APIBytes?
    }

    private let context: CallContext
    private let call: CountersignEvent.Call
    private let dialect: any CallDialect
    private let options: CallOptions
    private let trace: Locked<Trace>
    private let state = Locked(State())
    /// Nil if the draft has the body, which the scheme may have added to.
    private let streamed: RequestBody?

    init(
        _ context: CallContext, call: CountersignEvent.Call, trace: Locked<Trace>, body: PreparedBody,
        dialect: any CallDialect, options: CallOptions
    ) {
        (self.context, self.call, self.trace) = (context, call, trace)
        (self.dialect, self.options) = (dialect, options)
        streamed = body.isInMemory ? nil : body.body
    }

    /// The last response's fields as they came, and the rest of its body; nil if that was whole.
    func takeAnswer() -> (fields: [HeaderField], rest: APIBytes?) {
        state.with { state in
            defer { state.rest = nil }
            return (state.fields, state.rest)
        }
    }

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        // The caller no longer waits: the transport sends no further copy.
        if Task.isCancelled { throw TransportError(.cancelled, fate: .notSent) }
        let isFirst = try beginKeyed(draft)
        let (copy, why) = trace.with { trace in
            trace.copies += 1
            defer { trace.before = nil }
            return (trace.copies, trace.copies == 1 ? nil : trace.before ?? .other)
        }
        state.with { $0.rest = nil }
        context.report.events.tell(.sent(call, copy: copy, because: why))
        do throws(TransportError) {
            let request = OutgoingRequest(draft, to: context.base.origin, streaming: streamed)
            let answer = try await context.carrier.send(request, progress: options.progress)
            return try await read(answer)
        } catch {
            trace.with { trace in
                trace.before = .lostAnswer
                if isFirst, error.fate == .notSent { trace.keyed = nil }
            }
            throw error
        }
    }

    /// Throws if an earlier copy was sent so long ago that the server may have forgotten its key. Returns
    /// true for the first copy of a keyed request.
    private func beginKeyed(_ draft: Draft) throws(TransportError) -> Bool {
        guard draft.fields.contains(where: { $0.isNamed("idempotency-key") }) else { return false }
        let clock = context.options.clock
        guard let first = trace.with({ $0.keyed }) else {
            trace.with { $0.keyed = SendingTime(clock) }
            return true
        }
        guard !first.isOver(after: context.keyLifetime.seconds, by: clock) else {
            throw TransportError(.keyExpired, fate: .outcomeUnknown)
        }
        return false
    }

    private func read(_ answer: IncomingResponse) async throws(TransportError) -> Response {
        let fields = answer.fields.map(Draft.Field.init)
        context.keyLifetime.note(answer.fields, over: context.base.origin.security)
        state.with { $0.fields = answer.fields }
        guard case .whole(let limit) = options.reading else {
            return try await readAhead(answer, fields: fields)
        }
        let body = try await answer.body.collect(upTo: limit)
        let response = Response(status: answer.status, fields: fields, body: body)
        remember(response)
        return response
    }

    private func readAhead(
        _ answer: IncomingResponse, fields: [Draft.Field]
    ) async throws(TransportError) -> Response {
        var body: [UInt8] = []
        var pieces = answer.body.makeAsyncIterator()
        var isWhole = false
        while !isWhole, dialect.needsMore(of: answer, body: body) {
            if let piece = try await pieces.next() { body += piece } else { isWhole = true }
        }
        var response = Response(status: answer.status, fields: fields, body: isWhole ? body : [])
        guard isWhole else {
            response.message.isBodyWhole = false
            let rest = APIBytes(after: body, body: answer.body)
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

/// What a call's transport must know of the kind of server.
protocol CallDialect: Sendable {
    /// Whether more of a response must be there before it can be judged. `body` is what has come of it.
    func needsMore(of answer: IncomingResponse, body: [UInt8]) -> Bool
    /// The refusal's code in the protocol's terms; nil for any other response.
    func refusalCode(of response: Response) -> String?
}

/// Countersign servers: responses that matter are signed, and a refusal has a status of its own.
struct SignedDialect: CallDialect {
    /// The most bytes of a response that are read ahead to be judged; the authority sends no longer one.
    private static let most = 1 << 20

    func needsMore(of answer: IncomingResponse, body: [UInt8]) -> Bool {
        (answer.status >= 400 || answer.value(of: "signature-input") != nil)
            && body.count <= SignedDialect.most
    }

    /// Only a code that the protocol knows: other text may come from anyone.
    func refusalCode(of response: Response) -> String? {
        guard response.status >= 400 else { return nil }
        return Refusal.Code(rawValue: RefusalNotice(response).code)?.rawValue
    }
}

/// Legacy servers: a refusal is JSON under any status.
struct LegacyDialect: CallDialect {
    func needsMore(of answer: IncomingResponse, body: [UInt8]) -> Bool {
        LegacyResponseParser.mayRefuse(body)
    }

    func refusalCode(of response: Response) -> String? { LegacyResponseParser.code(of: response) }
}

extension OutgoingRequest {
    /// A draft as a carrier sends it, with exactly the bytes that were signed. `streamed` is sent in place of
    /// the draft's body: the content of which the draft has at most the digest.
    init(_ draft: Draft, to origin: Origin, streaming streamed: RequestBody? = nil) {
        self.init(
            draft.method, origin: origin, target: "/", fields: draft.fields.map(HeaderField.init),
            body: streamed ?? (draft.body.isEmpty ? .none : .bytes(draft.body)))
        target = draft.target
        authority = draft.authority
    }
}

extension HeaderField {
    init(_ field: Draft.Field) { self.init(field.name, bytes: field.value) }
}

extension Draft.Field {
    init(_ field: HeaderField) { self.init(name: field.name, bytes: field.value) }
}
