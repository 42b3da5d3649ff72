import CountersignTrust

/// Carries an answer from the transport's thread to whoever reads it, and says stop when he is slow.
final class AnswerChannel: Sendable {
    struct Head: Sendable {
        var status: Int
        var fields: [HTTPField]
    }

    /// What becomes of a piece.
    enum Taken { case taken, full }

    /// Bytes that are kept for a slow reader.
    static let limit = 262_144

    private struct State {
        var head: Result<Head, TransportError>?
        var headWaiter: CheckedContinuation<Result<Head, TransportError>, Never>?
        var pieces: [UInt8] = []
        var isPaused = false
        /// How it ended; nil till it did.
        var end: Result<Void, TransportError>?
        var bodyWaiter: CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?
    }

    private let state = Guarded(State())

    var isFinished: Bool { state.with { $0.end != nil } }

    // MARK: the transport's side

    func deliver(_ head: Head) {
        state.with { state in
            state.head = .success(head)
            return take(&state.headWaiter)
        }?.resume(returning: .success(head))
    }

    /// A piece that does not fit is to be brought again, once the reader has asked for more.
    func deliver(_ piece: UnsafeRawBufferPointer) -> Taken {
        let (taken, waiter) = state.with {
            state -> (Taken, CheckedContinuation<Result<[UInt8]?, TransportError>, Never>?) in
            if let waiter = take(&state.bodyWaiter) { return (.taken, waiter) }
            guard state.pieces.count + piece.count <= AnswerChannel.limit else {
                state.isPaused = true
                return (.full, nil)
            }
            state.pieces += piece
            return (.taken, nil)
        }
        waiter?.resume(returning: .success(Array(piece)))
        return taken
    }

    /// What came before is still read; then comes the end. Only the first one counts.
    func finish(_ end: Result<Void, TransportError>) {
        let waiters = state.with { state in
            if state.end == nil { state.end = end }
            if state.head == nil, case .failure(let error) = end { state.head = .failure(error) }
            return (take(&state.headWaiter), take(&state.bodyWaiter))
        }
        if let head = state.with({ $0.head }) { waiters.0?.resume(returning: head) }
        waiters.1?.resume(returning: end.map { nil })
    }

    // MARK: the reader's side

    func head() async -> Result<Head, TransportError> {
        await withCheckedContinuation { waiter in
            let head = state.with { state in
                if state.head == nil { state.headWaiter = waiter }
                return state.head
            }
            if let head { waiter.resume(returning: head) }
        }
    }

    /// All that has come since the last call, or else the next piece. `resume` is called where the server was made to wait.
    func next(_ resume: @Sendable () -> Void) async -> Result<[UInt8]?, TransportError> {
        await withCheckedContinuation { waiter in
            let (result, wasPaused) = state.with { state -> (Result<[UInt8]?, TransportError>?, Bool) in
                let wasPaused = state.isPaused
                state.isPaused = false
                guard state.pieces.isEmpty else {
                    defer { state.pieces = [] }
                    return (.success(state.pieces), wasPaused)
                }
                if let end = state.end { return (end.map { nil }, false) }
                state.bodyWaiter = waiter
                return (nil, wasPaused)
            }
            if wasPaused { resume() }
            if let result { waiter.resume(returning: result) }
        }
    }

    private func take<Waiter>(_ waiter: inout Waiter?) -> Waiter? {
        defer { waiter = nil }
        return waiter
    }
}
