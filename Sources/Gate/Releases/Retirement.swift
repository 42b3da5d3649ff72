/// How a release leaves: step by step, and device by device. Source: docs/protocol.md, "Retiring a version".
extension ReleaseKey {
    package struct Retirement: Sendable, Equatable {
        /// From then on its callers are refused and sent to `updateURL`. Whole Unix seconds, as the other moments.
        package var at: Int64
        package var updateURL: String
        /// From then on answers say that it will go; nil where nobody is warned.
        package var warnAt: Int64?
        /// From then on it may only read; nil where it keeps all it may until it goes.
        package var readOnlyAt: Int64?
        /// Whom the stages reach, by the time from which they do, rising; empty for everybody.
        package var rollout: [RolloutStep] = []

        package init(at: Int64, updateURL: String) {
            self.at = at
            self.updateURL = updateURL
        }
    }

    /// From `since` (whole Unix seconds; 0 for ever since) the stages reach `percent` of the devices, 0 to 100.
    package struct RolloutStep: Sendable, Equatable {
        package var since: Int64
        package var percent: Int

        package init(since: Int64, percent: Int) {
            self.since = since
            self.percent = percent
        }
    }

    /// How far a release has gone, for those whom its retirement reaches.
    package enum Stage: String, Sendable, CaseIterable {
        case live
        /// Served; answers bear `Countersign-Update`.
        case warn
        /// The same, and what would change something is refused.
        case readOnly = "read-only"
        case retired
    }
}

extension ReleaseKey.Retirement {
    /// The stage at that moment for those who are reached.
    package func stage(at now: Int64) -> ReleaseKey.Stage {
        if at <= now { return .retired }
        if let readOnlyAt, readOnlyAt <= now { return .readOnly }
        if let warnAt, warnAt <= now { return .warn }
        return .live
    }

    /// How many of a hundred devices are reached at that moment.
    package func percent(at now: Int64) -> Int {
        rollout.isEmpty ? 100 : rollout.last { $0.since <= now }?.percent ?? 0
    }

    /// The stage at that moment for a device of that place, 0 to 99. It is asked for only where some are reached and
    /// others are not.
    package func stage(at now: Int64, place: () -> Int) -> ReleaseKey.Stage {
        let stage = stage(at: now)
        guard stage != .live else { return .live }
        let percent = percent(at: now)
        return percent >= 100 || (percent > 0 && place() < percent) ? stage : .live
    }
}
