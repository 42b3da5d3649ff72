import CountersignGate
import CountersignSchemes
import CountersignWire

/// How an app does: what its policy suspends, and what the meter has of the last days. `app list`, `doctor`
/// and the metrics show the same.
package struct AppCondition: Sendable, Equatable {
    /// Days of the meter that count, today among them.
    package static let days: Int64 = 2

    package let isInMaintenance: Bool
    /// When the app or the last of its routes stops observing, in whole Unix seconds; nil if none observes.
    package let observingUntil: Int64?
    /// Requests that were sent to the backend, or that it was to get.
    package private(set) var forwarded: Int64 = 0
    /// Of these, those that failed there: a status of 500 or more, or no whole response.
    package private(set) var failed: Int64 = 0
    /// Requests of versions that are not registered, under the scheme `token`.
    package private(set) var unregistered: Int64 = 0

    /// Whether so many requests fail at the backend that the app does not work as it should: one in twenty.
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

    /// With the meter's entries of all apps.
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
        case .answered: forwarded += entry.count
        case .failed(let failure) where failure.isCausedByBackend:
            failed += entry.count
            if !failure.isAfterHead { forwarded += entry.count }
        default: break
        }
    }

    /// A few words for each thing that an operator should know; empty if the app does as it should.
    package var notes: [String] {
        var notes: [String] = []
        if isInMaintenance { notes.append("maintenance") }
        if let observingUntil { notes.append("observing until \(CivilTime.rfc3339Text(observingUntil))") }
        if isFailing { notes.append("\(failed) of \(forwarded) requests failed at the backend") }
        if unregistered > 0 { notes.append("\(unregistered) requests of unregistered versions") }
        return notes
    }
}
