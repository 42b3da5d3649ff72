import CountersignWire

/// What time it is at the authority.
///
/// Learnt from the authority's signed word only, and only where that cannot be old: who holds an answer back moves the clock by as
/// long as he holds it. Once learnt it goes on with the monotonic clock, so that nobody who sets the device's clock meanwhile is
/// refused for it. Source: docs/protocol.md, "Time".
final class ServerClock: Sendable {
    /// Milliseconds within which an answer must come.
    static let mostDelay: Int64 = 5_000

    private struct Anchor {
        /// Whole Unix seconds, by the authority.
        let told: Int64
        /// Of the monotonic clock.
        let milliseconds: Int64
    }

    private let anchor = Locked<Anchor?>(nil)

    /// Whole Unix seconds; nil before anything was learnt.
    func now(_ time: any ClientTime) -> Int64? {
        guard let anchor = anchor.with({ $0 }) else { return nil }
        return anchor.told + (time.milliseconds - anchor.milliseconds) / 1_000
    }

    /// The authority says that it is `told` o'clock.
    func learn(_ told: Int64, _ time: any ClientTime) {
        let milliseconds = time.milliseconds
        anchor.with { $0 = Anchor(told: told, milliseconds: milliseconds) }
    }

    /// The authority took what was dated `sent`, `took` milliseconds ago: the guess was good enough to go on with.
    func confirm(_ sent: Int64, took: Int64, _ time: any ClientTime) {
        guard took < ServerClock.mostDelay else { return }
        let milliseconds = time.milliseconds - took
        anchor.with { if $0 == nil { $0 = Anchor(told: sent, milliseconds: milliseconds) } }
    }
}

extension Notice {
    /// What a genuine `stale` teaches: the time at the authority; nil where it teaches nothing.
    func timeTold(took: Int64) -> Int64? {
        code == Refusal.Code.stale.rawValue && took < ServerClock.mostDelay ? time : nil
    }
}

extension Surroundings {
    /// What time it is at the authority, whole Unix seconds. Before it is learnt, the device's clock with what is kept from before.
    package func now() throws(ClientProblem) -> Int64 {
        if let now = keeper.clock.now(time) { return now }
        return time.now + (try keeper.state().clockOffset)
    }

    /// The authority took what was dated `sent`: its answer says so.
    func confirm(_ sent: Int64, by heard: Heard) {
        guard case .genuine(let answer) = heard, answer.notice == nil else { return }
        keeper.clock.confirm(sent, took: answer.took, time)
    }

    /// The authority's signed word, which came just now. Kept as the first guess of who comes after; should the vault fail, that
    /// is all that is lost.
    func learn(_ told: Int64) {
        keeper.clock.learn(told, time)
        let offset = told - time.now
        try? keeper.change { state in
            guard state.clockOffset != offset else { return .keep(()) }
            state.clockOffset = offset
            return .write(())
        }
    }
}
