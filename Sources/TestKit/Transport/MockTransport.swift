import CountersignMemory
import CountersignTransport
import CountersignTrust

/// A transport without a network: it returns scripted responses, records the requests, and fails where the
/// script says so.
///
/// It takes one step of its script for each request, and calls its closure when no step is left. It refuses
/// the same malformed requests as the real transport. It makes no TLS connection, and judges no
/// certificate.
public final class MockTransport: RequestTransport {
    private struct State {
        var script: [MockStep]
        var seen: [RecordedRequest] = []
        var attempts = 0
        var trusts: [Trust] = []
    }

    private let state: Locked<State>
    private let clock: ManualClock
    private let otherwise: MockStep?

    /// Makes a transport with a script only: a request without a step fails as not sent.
    public init(_ script: [MockStep], clock: ManualClock = ManualClock()) {
        state = Locked(State(script: script))
        self.clock = clock
        otherwise = nil
    }

    /// Makes a transport that calls `answer` for each request after the script's steps.
    public init(
        _ script: [MockStep] = [], clock: ManualClock = ManualClock(),
        answer: @escaping @Sendable (RecordedRequest) async throws(TransportError) -> MockResponse
    ) {
        state = Locked(State(script: script))
        self.clock = clock
        otherwise = .perform(answer)
    }

    /// Appends steps to the script.
    public func append(_ steps: MockStep...) { state.with { $0.script += steps } }

    /// The requests that arrived, in order; a request whose fate was `notSent` did not arrive.
    public var seen: [RecordedRequest] { state.with { $0.seen } }

    /// The number of attempts to send a request, whatever their outcome.
    public var attempts: Int { state.with { $0.attempts } }

    /// The number of steps that no request has used. A test that ends with unused steps has not tested what
    /// it states.
    public var stepsLeft: Int { state.with { $0.script.count } }

    /// The trusts that replaced the first one, in order.
    public var trusts: [Trust] { state.with { $0.trusts } }

    /// Records `trust`. There is no connection to close.
    public func replaceTrust(by trust: Trust) { state.with { $0.trusts.append(trust) } }

    /// Performs the script's next step with the request.
    public func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse {
        if let flaw = request.flaw { throw TransportError(.malformedRequest(flaw), fate: .notSent) }
        if Task.isCancelled { throw TransportError(.cancelled, fate: .notSent) }
        guard let step = next() else {
            let what = "no step is left for \(request.method) \(request.origin)"
            throw TransportError(.machine("MockTransport: \(what)"), fate: .notSent)
        }
        if case .fail(let error) = step, error.fate == .notSent { throw error }
        let seen = try await receive(request)
        var far = TransferProgress()
        (far.sent, far.toSend) = (Int64(seen.body.count), .bytes(Int64(seen.body.count)))
        progress(far)
        let answer: MockResponse
        switch step {
        case .fail(let error): throw error
        case .answer(let given): answer = given
        case .perform(let perform): answer = try await perform(seen)
        }
        do {
            try await clock.sleep(for: answer.delay)
        } catch {
            throw TransportError(.cancelled, fate: .outcomeUnknown)
        }
        let body = MockBody(answer, sent: far, progress: progress)
        return IncomingResponse(status: answer.status, fields: answer.fields, body: ResponseBody(body))
    }

    private func next() -> MockStep? {
        state.with { state in
            state.attempts += 1
            return state.script.isEmpty ? otherwise : state.script.removeFirst()
        }
    }

    private func receive(_ request: OutgoingRequest) async throws(TransportError) -> RecordedRequest {
        let seen = RecordedRequest(
            method: request.method, origin: request.origin,
            target: String(decoding: request.target, as: UTF8.self),
            fields: request.fields, body: try await request.body.received())
        state.with { $0.seen.append(seen) }
        return seen
    }
}

extension RequestBody {
    /// The whole body, as a server receives it.
    fileprivate func received() async throws(TransportError) -> [UInt8] {
        switch self {
        case .none: return []
        case .bytes(let bytes): return bytes
        case .replayable(let body): return try await RequestBody.received(body.length, write: body.write)
        case .once(let body):
            guard let write = body.take() else { throw TransportError(.bodyUsedUp, fate: .notSent) }
            return try await RequestBody.received(body.length, write: write)
        }
    }

    private static func received(
        _ length: BodyLength, write: BodyWriter
    ) async throws(TransportError) -> [UInt8] {
        let sink = Locked<[UInt8]>([])
        do {
            try await write { piece in sink.with { $0 += piece } }
        } catch {
            throw TransportError(.body("its stream failed: \(error)"), fate: .outcomeUnknown)
        }
        let bytes = sink.with { $0 }
        if case .bytes(let expected) = length, bytes.count != expected {
            throw TransportError(
                .body("its stream has \(bytes.count) bytes; \(expected) were said"), fate: .outcomeUnknown)
        }
        return bytes
    }
}

/// The body of a scripted response.
private final class MockBody: BodySource {
    private struct State {
        var pieces: [[UInt8]]
        var far: TransferProgress
        var isCancelled = false
    }

    private let state: Locked<State>
    private let ending: MockResponse.Ending
    private let progress: @Sendable (TransferProgress) -> Void

    init(
        _ answer: MockResponse, sent far: TransferProgress,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) {
        let pieces = answer.pieces.filter { !$0.isEmpty }
        var far = far
        if case .whole = answer.ending { far.toReceive = .bytes(Int64(pieces.reduce(0) { $0 + $1.count })) }
        state = Locked(State(pieces: pieces, far: far))
        ending = answer.ending
        self.progress = progress
    }

    func cancel() { state.with { $0.isCancelled = true } }

    func next() async throws(TransportError) -> [UInt8]? {
        if Task.isCancelled { cancel() }
        let (piece, far, isCancelled) = state.with { state -> ([UInt8]?, TransferProgress, Bool) in
            guard !state.isCancelled, !state.pieces.isEmpty else {
                return (nil, state.far, state.isCancelled)
            }
            let piece = state.pieces.removeFirst()
            state.far.received += Int64(piece.count)
            return (piece, state.far, false)
        }
        if isCancelled { throw TransportError(.cancelled, fate: .brokenOff) }
        if let piece {
            progress(far)
            return piece
        }
        if case .brokenOff(let cause) = ending { throw TransportError(cause, fate: .brokenOff) }
        return nil
    }
}

/// A response of a ``MockTransport``.
public struct MockResponse: Sendable {
    /// How the body ends.
    public enum Ending: Sendable {
        /// The body ends completely.
        case whole
        /// The body breaks off after the given pieces.
        case brokenOff(TransportError.Cause)
    }

    /// The status, 200 to 599.
    public var status: Int
    /// The header fields, in order.
    public var fields: [HeaderField]
    /// The body in pieces; empty pieces are left out.
    public var pieces: [[UInt8]]
    /// How the body ends; by default completely.
    public var ending = Ending.whole
    /// The delay before the head, on the transport's ``ManualClock``.
    public var delay = Duration.zero

    /// Makes a response with a body in one piece.
    public init(_ status: Int = 200, fields: [HeaderField] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        pieces = [body]
    }

    /// Makes a response with a text as its body.
    public init(_ status: Int = 200, fields: [HeaderField] = [], text: String) {
        self.init(status, fields: fields, body: Array(text.utf8))
    }

    /// The same response after a delay.
    public func after(_ delay: Duration) -> MockResponse {
        var answer = self
        answer.delay = delay
        return answer
    }

    /// The same response, but its body breaks off after its pieces.
    public func breakingOff(_ cause: TransportError.Cause = .connectionLost("scripted")) -> MockResponse {
        var answer = self
        answer.ending = .brokenOff(cause)
        return answer
    }
}

/// The action of a ``MockTransport`` on one request.
public enum MockStep: Sendable {
    /// The request arrives, and the transport returns this response.
    case answer(MockResponse)
    /// The request fails with this error. If its fate is `notSent`, the request does not arrive; otherwise
    /// it does.
    case fail(TransportError)
    /// The request arrives, and the closure returns the response.
    case perform(@Sendable (RecordedRequest) async throws(TransportError) -> MockResponse)
}

/// A request as a ``MockTransport`` received it.
public struct RecordedRequest: Sendable {
    /// The method, in the case in which it was sent.
    public let method: String
    /// The origin that the request was sent to.
    public let origin: Origin
    /// The path and query, percent-encoded.
    public let target: String
    /// The fields of the request, without those that the transport adds.
    public let fields: [HeaderField]
    /// The whole body, streamed or not.
    public let body: [UInt8]

    /// The value of the first field of that name, ignoring case.
    public func value(of name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }.map {
            String(decoding: $0.value, as: UTF8.self)
        }
    }

    /// The origin followed by the target.
    public var url: String { "\(origin)\(target)" }
}
