import CountersignGate
import CountersignSchemes
import CountersignWire

/// The condition of an app: what its policy suspends, and what the meter has counted in the last days. `app
/// list`, `doctor` and the metrics show the same condition.
package struct AppCondition: Sendable, Equatable {
    /// The number of days of the meter that are included, today among them.
    package static let days: Int64 = 2

    package let isInMaintenance: Bool
    /// When the app or the last of its routes stops observing, in whole Unix seconds; nil if nothing
    /// observes.
    package let observingUntil: Int64?
    /// Requests that were forwarded to the backend, or failed before they reached it.
    package private(set) var forwarded: Int64 = 0
    /// Of these, the requests that failed at the backend: its status was 500 or more, or its response was not
    /// complete.
    package private(set) var failed: Int64 = 0
    /// Requests of versions that are not registered, under the scheme `token`.
    package private(set) var unregistered: Int64 = 0

    /// Whether at least one request in twenty failed at the backend.
    package var isFailing: Bool { failed > 0 && failed * 20 >= forwarded }

    /// `now` is in whole Unix seconds.
    package init(_ policy: Policy, at now: Int64) {
        isInMaintenance = policy.traffic.maintenance != nil
        let all = [policy.enforcement] + policy.routes.rules.compactMap(\.enforcement)
        observingUntil = all.compactMap { (enforcement) -> Int64? in
            guard case .observe(let until) = enforcement, until > now else { return nil }
            return until
        }.max()
    }

    /// `meter` has the entries of all apps.
    package init(_ app: App, meter: [MeterEntry], at now: Int64) throws(OperationalError) {
        self.init(try app.policy(), at: now)
        let others = HostedApp.otherVersionsID(of: app.name.description).description
        for entry in meter
        where entry.subject.app == app.name.description && entry.day > now / 86_400 - AppCondition.days {
            add(entry, isUnregistered: entry.subject.release == others)
        }
    }

    private mutating func add(_ entry: MeterEntry, isUnregistered: Bool) {
        if isUnregistered, entry.subject.outcome.isEnd { unregistered += entry.count }
        switch entry.subject.outcome {
        case .answered, .repeated: forwarded += entry.count
        case .failed(let failure) where failure.isCausedByBackend:
            failed += entry.count
            if !failure.isAfterHead { forwarded += entry.count }
        default: break
        }
    }

    /// A short note on each condition that needs an operator's attention; empty for a healthy app.
    package var notes: [String] {
        var notes: [String] = []
        if isInMaintenance { notes.append("maintenance") }
        if let observingUntil { notes.append("observing until \(CivilTime.rfc3339Text(observingUntil))") }
        if isFailing { notes.append("\(failed) of \(forwarded) requests failed at the backend") }
        if unregistered > 0 { notes.append("\(unregistered) requests of unregistered versions") }
        return notes
    }
}
