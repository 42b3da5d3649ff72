import CountersignMemory
import CountersignTrust

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Passes the pieces of a body from the caller's stream to the transport's thread at the speed of sending.
final class UploadChannel: Sendable {
    /// What can be sent now.
    enum Supply: Equatable {
        case bytes(Int)
        /// Nothing yet; the channel resumes the transfer when data arrive.
        case nothingYet
        case end
        case failed(String)
    }

    /// The most bytes buffered for a slow server.
    static let limit = 262_144

    private struct State {
        var pieces: [UInt8] = []
        /// The position of the first unread byte, so that reading does not move the rest.
        var start = 0
        var isStarved = false
        var end: Supply?
        var total = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Locked(State())
    private let length: BodyLength
    private let resume: @Sendable () -> Void

    init(_ length: BodyLength, resume: @escaping @Sendable () -> Void) {
        self.length = length
        self.resume = resume
    }

    /// Bytes in memory, including those already sent.
    var bufferedBytes: Int { state.with { $0.pieces.count } }

    /// Whether the transfer waits for the caller's stream.
    var isStarved: Bool { state.with { $0.isStarved } }

    /// Adds a piece; waits while the buffer is full.
    func push(_ piece: [UInt8]) async throws {
        try Task.checkCancellation()
        let (wasStarved, isFull) = state.with { state -> (Bool, Bool) in
            state.total += piece.count
            if case .bytes(let length) = length, state.total > length, state.end == nil {
                state.end = .failed("its stream has more than the \(length) bytes that were said")
            } else if state.end == nil {
                state.pieces += piece
            }
            defer { state.isStarved = false }
            return (state.isStarved, state.pieces.count - state.start >= UploadChannel.limit)
        }
        if wasStarved { resume() }
        guard isFull else { return }
        await withCheckedContinuation { waiter in
            let isRoom = state.with { state in
                guard state.end == nil, state.pieces.count - state.start >= UploadChannel.limit else {
                    return true
                }
                state.waiter = waiter
                return false
            }
            if isRoom { waiter.resume() }
        }
    }

    /// Ends the body: the stream has ended or thrown.
    func close(_ failure: String?) {
        let (wasStarved, waiter) = state.with { state in
            if state.end == nil {
                if let failure {
                    state.end = .failed(failure)
                } else if case .bytes(let length) = length, state.total != length {
                    state.end = .failed("its stream has \(state.total) bytes; \(length) were said")
                } else {
                    state.end = .end
                }
            }
            defer { (state.isStarved, state.waiter) = (false, nil) }
            return (state.isStarved, state.waiter)
        }
        waiter?.resume()
        if wasStarved { resume() }
    }

    /// Copies available bytes into `room`.
    func take(into room: UnsafeMutableRawBufferPointer) -> Supply {
        let (supply, waiter) = state.with { state -> (Supply, CheckedContinuation<Void, Never>?) in
            if case .failed = state.end, let end = state.end { return (end, nil) }
            let count = min(room.count, state.pieces.count - state.start)
            guard count > 0 else {
                guard let end = state.end else {
                    state.isStarved = true
                    return (.nothingYet, nil)
                }
                return (end, nil)
            }
            state.pieces[state.start..<(state.start + count)].withUnsafeBytes { room.copyMemory(from: $0) }
            state.start += count
            if state.start == state.pieces.count {
                state.pieces.removeAll(keepingCapacity: true)
                state.start = 0
            } else if state.start >= UploadChannel.limit {
                // A fast stream never lets the buffer become empty.
                state.pieces.removeSubrange(..<state.start)
                state.start = 0
            }
            guard state.pieces.count - state.start < UploadChannel.limit else { return (.bytes(count), nil) }
            defer { state.waiter = nil }
            return (.bytes(count), state.waiter)
        }
        waiter?.resume()
        return supply
    }
}
