import Synchronization

/// What the engine did to be fair, since the process began; for the metrics.
package final class EngineCounters: Sendable {
    private let refusedByAddress = Atomic<Int>(0)
    private let evictedIdle = Atomic<Int>(0)
    private let deferredTurns = Atomic<Int>(0)
    private let cutSlowReaders = Atomic<Int>(0)
    private let refusedBodies = Atomic<Int>(0)

    package enum Event {
        /// A connection was closed because its address has as many as it may.
        case refusedByAddress
        /// A connection was closed for a new one: a stranger's, or an idle one.
        case evictedIdle
        /// A connection that had used its share of a turn waited for the next.
        case deferredTurn
        /// A client took an answer more slowly than it may.
        case cutSlowReader
        /// A body was not held, because its sender or all together hold as much as they may.
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
