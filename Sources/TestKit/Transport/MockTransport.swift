import CountersignMemory
import CountersignTransport
import CountersignTrust

/// A transport without a network: answers as it was told, keeps what it was sent, and fails where a test says so.
///
/// It takes a step of its script for each request, and once those are used up, asks its closure. What the real transport
/// refuses to send, it refuses as well. It makes no TLS connection: to test trust, use a ``TestServer``.
public final class MockTransport: Carrier {
    private struct State {
        var script: [MockStep]
        var seen: [SeenRequest] = []
        var attempts = 0
        var trusts: [Trust] = []
    }

    private let state: Locked<State>
    private let clock: ManualClock
    private let otherwise: MockStep?

    /// With steps alone: a request for which there is none fails, and was not sent.
    public init(_ script: [MockStep], clock: ManualClock = ManualClock()) {
        state = Locked(State(script: script))
        self.clock = clock
        otherwise = nil
    }

    /// `answer` is asked for each request, after the script's steps.
    public init(
        _ script: [MockStep] = [], clock: ManualClock = ManualClock(),
        _ answer: @escaping @Sendable (SeenRequest) async throws(TransportError) -> MockAnswer
    ) {
        state = Locked(State(script: script))
        self.clock = clock
        otherwise = .perform(answer)
    }

    /// Steps for the next requests, after those that are there.
    public func append(_ steps: MockStep...) { state.with { $0.script += steps } }

    /// What arrived, in order; a request whose fate was `notSent` did not.
    public var seen: [SeenRequest] { state.with { $0.seen } }

    /// How often something was to be sent, whatever became of it.
    public var attempts: Int { state.with { $0.attempts } }

    /// Steps that no request has come for. A test that ends with some has not tested what it says.
    public var stepsLeft: Int { state.with { $0.script.count } }

    /// The trusts that were put in force, in order.
    public var trusts: [Trust] { state.with { $0.trusts } }

    /// Records it. No connection is there to be cut.
    public func replaceTrust(by trust: Trust) { state.with { $0.trusts.append(trust) } }

    /// Does with the request what the script says.
    public func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse {
        if let flaw = request.flaw { throw TransportError(.malformedRequest(flaw), .notSent) }
        if Task.isCancelled { throw TransportError(.cancelled, .notSent) }
        guard let step = next() else {
            let what = "no step is left for \(request.method) \(request.origin)"
            throw TransportError(.machine("MockTransport: \(what)"), .notSent)
        }
        if case .fail(let error) = step, error.fate == .notSent { throw error }
        let seen = try await receive(request)
        var far = TransferProgress()
        (far.sent, far.toSend) = (Int64(seen.body.count), .bytes(Int64(seen.body.count)))
        progress(far)
        let answer: MockAnswer
        switch step {
        case .fail(let error): throw error
        case .answer(let given): answer = given
        case .perform(let perform): answer = try await perform(seen)
        }
        do {
            try await clock.sleep(for: answer.delay)
        } catch {
            throw TransportError(.cancelled, .outcomeUnknown)
        }
        let body = MockBody(answer, far, progress)
        return IncomingResponse(status: answer.status, fields: answer.fields, body: ResponseBody(body))
    }

    private func next() -> MockStep? {
        state.with { state in
            state.attempts += 1
            return state.script.isEmpty ? otherwise : state.script.removeFirst()
        }
    }

    private func receive(_ request: OutgoingRequest) async throws(TransportError) -> SeenRequest {
        let seen = SeenRequest(
            method: request.method, origin: request.origin, target: String(decoding: request.target, as: UTF8.self),
            fields: request.fields, body: try await request.body.received())
        state.with { $0.seen.append(seen) }
        return seen
    }
}

extension RequestBody {
    /// All of it, as a server gets it.
    fileprivate func received() async throws(TransportError) -> [UInt8] {
        switch self {
        case .none: return []
        case .bytes(let bytes): return bytes
        case .replayable(let body): return try await RequestBody.received(body.length, body.write)
        case .once(let body):
            guard let write = body.take() else { throw TransportError(.bodyUsedUp, .notSent) }
            return try await RequestBody.received(body.length, write)
        }
    }

    private static func received(
        _ length: BodyLength, _ write: BodyWriter
    ) async throws(TransportError) -> [UInt8] {
        let sink = Locked<[UInt8]>([])
        do {
            try await write { piece in sink.with { $0 += piece } }
        } catch {
            throw TransportError(.body("its stream failed: \(error)"), .outcomeUnknown)
        }
        let bytes = sink.with { $0 }
        if case .bytes(let expected) = length, bytes.count != expected {
            throw TransportError(.body("its stream has \(bytes.count) bytes; \(expected) were said"), .outcomeUnknown)
        }
        return bytes
    }
}

/// A scripted answer's body.
private final class MockBody: BodySource {
    private struct State {
        var pieces: [[UInt8]]
        var far: TransferProgress
        var isCancelled = false
    }

    private let state: Locked<State>
    private let ending: MockAnswer.Ending
    private let progress: @Sendable (TransferProgress) -> Void

    init(_ answer: MockAnswer, _ far: TransferProgress, _ progress: @escaping @Sendable (TransferProgress) -> Void) {
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
            guard !state.isCancelled, !state.pieces.isEmpty else { return (nil, state.far, state.isCancelled) }
            let piece = state.pieces.removeFirst()
            state.far.received += Int64(piece.count)
            return (piece, state.far, false)
        }
        if isCancelled { throw TransportError(.cancelled, .brokenOff) }
        if let piece {
            progress(far)
            return piece
        }
        if case .brokenOff(let cause) = ending { throw TransportError(cause, .brokenOff) }
        return nil
    }
}
