import CountersignMemory
import CountersignTrust

/// Tells any number of listeners the same, in the same order.
final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var latest: Value?
        var isOver = false
    }

    /// What a new listener hears first, and what one who is slow loses.
    enum Memory {
        /// The value that holds, and of many the last one.
        case latest
        /// Nothing of the past; of more than so many that wait, the oldest go.
        case recent(Int)
    }

    private let state: Locked<State>
    private let memory: Memory

    init(_ memory: Memory, latest: Value? = nil) {
        self.memory = memory
        state = Locked(State(latest: latest))
    }

    deinit { finish() }

    /// The value that was told last.
    var latest: Value? { state.with { $0.latest } }

    /// Handed over under the lock: two that are told at once reach each listener in the same order.
    func tell(_ value: Value) {
        state.with { state in
            if case .latest = memory { state.latest = value }
            for listener in state.listeners.values { listener.yield(value) }
        }
    }

    /// Decides by the value that holds, and tells what comes of it, where that is another.
    func tell(_ change: (Value?) -> Value?) where Value: Equatable {
        state.with { state in
            guard let value = change(state.latest), value != state.latest else { return }
            state.latest = value
            for listener in state.listeners.values { listener.yield(value) }
        }
    }

    /// A new listener's.
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

    /// Ends all streams. Outside of the lock: to end one calls back.
    func finish() {
        let listeners = state.with { state in
            state.isOver = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
