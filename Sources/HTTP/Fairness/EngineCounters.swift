import Synchronization

/// Counts the engine's fairness measures since the process began, for the metrics.
package final class EngineCounters: Sendable {
    private let refusedByAddress = Atomic<Int>(0)
    private let evictedIdle = Atomic<Int>(0)
    private let deferredTurns = Atomic<Int>(0)
    private let cutSlowReaders = Atomic<Int>(0)
    private let refusedBodies = Atomic<Int>(0)

    package enum Event {
        /// A connection was closed because its address is at its limit.
        case refusedByAddress
        /// A connection was closed for another one: an unproven or an idle one.
        case evictedIdle
        /// A connection waited for a turn, because its address had used its share.
        case deferredTurn
        /// A connection was closed because its client read a response more slowly than the limit allows.
        case cutSlowReader
        /// A body was not held, because its sender or all senders together were at their limit.
        case refusedBody
    }

    package init() {}

    package func add(_ event: Event) {
        switch event {
        case .refusedByAddress: refusedByAddress.add(1, ordering: .relaxed)
        case .evictedIdle: evictedIdle.add(1, ordering: .relaxed)
        case .deferredTurn: deferredTurns.add(1, ordering: .relaxed)
        case .cutSlowReader: cutSlowReaders.add(1, ordering: .relaxed)
        case .refusedBody: refusedBodies.add(1, ordering: .relaxed)
        }
    }

    package func count(of event: Event) -> Int {
        switch event {
        case .refusedByAddress: refusedByAddress.load(ordering: .relaxed)
        case .evictedIdle: evictedIdle.load(ordering: .relaxed)
        case .deferredTurn: deferredTurns.load(ordering: .relaxed)
        case .cutSlowReader: cutSlowReaders.load(ordering: .relaxed)
        case .refusedBody: refusedBodies.load(ordering: .relaxed)
        }
    }
}
