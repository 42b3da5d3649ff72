import CountersignMemory

/// Publishes a client's state, and its events.
final class StatePublisher: Sendable {
    let events = Broadcast<CountersignEvent>(.recent(StatePublisher.mostEvents))
    private let shown = Broadcast<CountersignState>(.latest, latest: .unavailable)
    private let isPresenceNeeded = Locked(false)

    /// The most log lines that wait for a slow reader.
    private static let mostEvents = 1_000

    var state: CountersignState { shown.latest ?? .unavailable }

    var states: AsyncStream<CountersignState> { shown.stream() }

    /// Those that follow the state: a request that waits is one.
    var listenerCount: Int { shown.listenerCount }

    /// Publishes a change of state; nil if the state stays, and only `isNeeded` may have changed.
    func publish(_ state: CountersignState?, isPresenceNeeded isNeeded: Bool) {
        let wasNeeded = isPresenceNeeded.with { known in
            defer { known = isNeeded }
            return known
        }
        if isNeeded, !wasNeeded { events.tell(.presenceNeeded) }
        guard let state else { return }
        shown.tell { _ in state }
        events.tell(.state(CountersignEvent.State(state)))
    }

    func finish() {
        shown.finish()
        events.finish()
    }
}
