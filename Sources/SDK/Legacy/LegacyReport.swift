import CountersignMemory
import CountersignClient
import CountersignTrust

/// What a legacy client tells its listeners: how it stands, and what it does.
final class LegacyReport: Sendable {
    let events: Broadcast<CountersignEvent>
    private let shown = Broadcast<CountersignState>(.latest, latest: .unavailable)
    private let isPresenceNeeded = Locked(false)

    init(_ events: Broadcast<CountersignEvent>) { self.events = events }

    var state: CountersignState { shown.latest ?? .unavailable }

    var states: AsyncStream<CountersignState> { shown.stream() }

    /// The state machine's word: each is another than the one before.
    func take(_ standing: LegacyStanding) {
        let isNeeded = standing == .presenceNeeded
        let wasNeeded = isPresenceNeeded.with { known in
            defer { known = isNeeded }
            return known
        }
        if isNeeded, !wasNeeded { events.tell(.presenceNeeded) }
        let state = CountersignState(standing)
        shown.tell { _ in state }
        events.tell(.state(CountersignEvent.State(state)))
    }

    func finish() {
        shown.finish()
        events.finish()
    }
}
