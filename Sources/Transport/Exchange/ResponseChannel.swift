import CountersignMemory
import CountersignTrust

/// Carries a response from the transport's thread to its reader, and pauses the transfer while the reader
/// is slow.
///
/// Each continuation is resumed once: it is either stored under the lock, and taken from there under the
/// lock by ``wake()``, or resumed where it was made.
final class ResponseChannel: Sendable {
    struct Head: Sendable {
        var status: Int
        var fields: [HeaderField]
    }

    /// The result of offering a piece.
    enum Delivery { case accepted, full }

    /// The most bytes buffered for a slow reader.
    static let limit = 262_144

    private struct State {
        var head: Result<Head, TransportError>?
        var headWaiter: UnsafeContinuation<Result<Head, TransportError>, Never>?
        var pieces: [UInt8] = []
        var isPaused = false
        /// How the response ended; nil until then.
        var end: Result<Void, TransportError>?
        var bodyWaiter: UnsafeContinuation<Result<[UInt8]?, TransportError>, Never>?

        /// The next part for the reader; nil if it must wait.
        mutating func takeBody() -> Result<[UInt8]?, TransportError>? {
            guard pieces.isEmpty else {
                defer { pieces = [] }
                return .success(pieces)
            }
            return end.map { $0.map { nil } }
        }
    }

    private let state = Locked(State())

    var isFinished: Bool { state.with { $0.end != nil } }

    // MARK: the transport's side

    /// ``wake()`` resumes the waiting reader: a response that arrives at once then costs one thread switch
    /// instead of three.
    func deliver(_ head: Head) { state.with { $0.head = .success(head) } }

    /// The caller offers a piece that does not fit again when the reader has asked for more.
    func deliver(_ piece: UnsafeRawBufferPointer) -> Delivery {
        state.with { state in
            guard state.pieces.isEmpty || state.pieces.count + piece.count <= ResponseChannel.limit else {
                state.isPaused = true
                return .full
            }
            // The first piece is often the whole body.
            if state.pieces.isEmpty { state.pieces = Array(piece) } else { state.pieces += piece }
            return .accepted
        }
    }

    /// Ends the response: the reader first receives the buffered pieces. Later calls have no effect.
    func finish(_ end: Result<Void, TransportError>) {
        state.with { state in
            if state.end == nil { state.end = end }
            if state.head == nil, case .failure(let error) = end { state.head = .failure(error) }
        }
        wake()
    }

    /// Hands the buffered part to the waiting reader.
    func wake() {
        let (forHead, head, forBody, body) = state.with { state in
            let head = state.headWaiter == nil ? nil : state.head
            let body = state.bodyWaiter == nil ? nil : state.takeBody()
            return (
                head == nil ? nil : take(&state.headWaiter), head,
                body == nil ? nil : take(&state.bodyWaiter), body
            )
        }
        if let forHead, let head { forHead.resume(returning: head) }
        if let forBody, let body { forBody.resume(returning: body) }
    }

    // MARK: the reader's side

    func head() async -> Result<Head, TransportError> {
        if let head = state.with({ $0.head }) { return head }
        return await withUnsafeContinuation { waiter in
            let head = state.with { state in
                if state.head == nil { state.headWaiter = waiter }
                return state.head
            }
            if let head { waiter.resume(returning: head) }
        }
    }

    /// All that is left, if the response is complete and that has at most `limit` bytes; nil otherwise.
    func takeWhole(upTo limit: Int) -> [UInt8]? {
        state.with { state in
            guard case .success? = state.end, state.pieces.count <= limit else { return nil }
            defer { state.pieces = [] }
            return state.pieces
        }
    }

    /// Everything received since the last call; waits if that is nothing. Calls `resume` if the transfer
    /// was paused.
    func next(_ resume: @Sendable () -> Void) async -> Result<[UInt8]?, TransportError> {
        let (atOnce, wasPaused) = state.with { state in
            defer { state.isPaused = false }
            return (state.takeBody(), state.isPaused)
        }
        if wasPaused { resume() }
        if let atOnce { return atOnce }
        return await withUnsafeContinuation { waiter in
            let result = state.with { state in
                let result = state.takeBody()
                if result == nil { state.bodyWaiter = waiter }
                return result
            }
            if let result { waiter.resume(returning: result) }
        }
    }

    private func take<Waiter>(_ waiter: inout Waiter?) -> Waiter? {
        defer { waiter = nil }
        return waiter
    }
}
