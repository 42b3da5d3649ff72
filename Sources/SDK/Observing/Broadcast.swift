import CountersignMemory
import CountersignTrust

/// Sends the same values in the same order to any number of listeners.
final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var latest: Value?
        var isOver = false
    }

    /// What a new listener receives first, and what a slow listener loses.
    enum Memory {
        /// The current value; of several waiting values the last one.
        case latest
        /// No past values; of more than this many waiting values the oldest are dropped.
        case recent(Int)
    }

    private let state: Locked<State>
    private let memory: Memory

    init(_ memory: Memory, latest: Value? = nil) {
        self.memory = memory
        state = Locked(State(latest: latest))
    }

    deinit { finish() }

    var listenerCount: Int { state.with { $0.listeners.count } }

    /// The last value sent.
    var latest: Value? { state.with { $0.latest } }

    /// Delivers under the lock: two simultaneous values reach each listener in the same order. The value is
    /// not computed if neither a listener nor the memory takes it.
    func tell(_ value: @autoclosure () -> Value) {
        if case .recent = memory, state.with({ $0.listeners.isEmpty }) { return }
        let value = value()
        state.with { state in
            if case .latest = memory { state.latest = value }
            for listener in state.listeners.values { listener.yield(value) }
        }
    }

    /// Computes the next value from the current one, and sends it if it differs.
    func tell(_ change: (Value?) -> Value?) where Value: Equatable {
        state.with { state in
            guard let value = change(state.latest), value != state.latest else { return }
            state.latest = value
            for listener in state.listeners.values { listener.yield(value) }
        }
    }

    /// The stream of a new listener.
    func stream() -> AsyncStream<Value> {
        let buffer: AsyncStream<Value>.Continuation.BufferingPolicy =
            switch memory {
            case .latest: .bufferingNewest(1)
            case .recent(let count): .bufferingNewest(count)
            }
        let (stream, listener) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: buffer)
        let number = state.with { state -> Int? in
            guard !state.isOver else { return nil }
            if let latest = state.latest { listener.yield(latest) }
            state.next += 1
            state.listeners[state.next] = listener
            return state.next
        }
        guard let number else {
            listener.finish()
            return stream
        }
        listener.onTermination = { [weak self] _ in
            guard let self else { return }
            _ = state.with { $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    /// Ends all streams. Outside of the lock, because ending a stream calls back.
    func finish() {
        let listeners = state.with { state in
            state.isOver = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
