import CountersignGate
import CountersignWire

/// A request that was refused, or that failed after it was admitted, as the log has it.
package struct RecentRefusal: Sendable {
    /// The event's id, as responses and the log have it.
    package let event: String
    /// The refusal's code, or the kind of failure.
    package let code: String
    /// The line of the log: JSON.
    package let line: [UInt8]
    /// The app and the key id that the request names, proved or not; nil if it names no release.
    package let named: (app: String, release: String)?
    package let search: Search
    /// Whole Unix seconds.
    package let time: Int64

    /// Whether a mistake of the signer was looked for that explains the refusal.
    package enum Search: Sendable {
        case notMade
        /// `notes` are the gate's requirements that the signature does not meet.
        case made(Cause?, notes: [String])
    }

    /// The app that the request names, or whose host it was sent to; nil if there is neither.
    package var app: String? {
        if let named { return named.app }
        let root = try? JSONReader.read(line).root
        return root?["app"]?.string ?? root?["claimed_app"]?.string
    }

    /// Nil if none was found or looked for.
    package var cause: Cause? { if case .made(let cause, _) = search { cause } else { nil } }
}

/// The refusals that have a line in the log, for the console, the API and commands: the latest in memory, and
/// earlier ones on the disk. In memory, each code has its own slots, so that a flood of one code does not
/// displace the others.
package final class RecentRefusals: Sendable {
    /// Nil without a data folder, as in tests, or if the settings leave no room.
    package let store: RefusalStore?

    static let mostOfCode = 24
    static let longestLine = 4_096

    /// By code, the oldest first.
    private let entries = Locked<[String: [RecentRefusal]]>([:])

    package init(store: RefusalStore? = nil) { self.store = store }

    /// `isProven` states whether the caller has proved anything.
    func add(_ refusal: RecentRefusal, isProven: Bool = false) {
        store?.add(refusal, isProven: isProven)
        guard refusal.line.count <= RecentRefusals.longestLine else { return }
        entries.with { entries in
            var kept = entries[refusal.code] ?? []
            // Not while the array is in two places: it would be copied.
            entries[refusal.code] = nil
            if kept.count >= RecentRefusals.mostOfCode {
                // Those without an explanation go first: in a flood few have one.
                kept.remove(at: kept.firstIndex { $0.cause == nil } ?? 0)
            }
            kept.append(refusal)
            entries[refusal.code] = kept
        }
    }

    /// The refusal of that event, found by its id at once.
    package func refusal(of event: String) -> RecentRefusal? {
        let event = event.lowercased()
        let found = entries.with { entries -> RecentRefusal? in
            for kept in entries.values {
                if let found = kept.first(where: { $0.event == event }) { return found }
            }
            return nil
        }
        return found ?? store?.refusal(of: event)
    }

    /// The refusals that the filter accepts, of those in memory and the last ``RefusalStore/mostRead`` of
    /// each kind on the disk. Lists at most `most`, the newest first, and counts all.
    package func report(of filter: RefusalFilter = RefusalFilter(), atMost most: Int) -> RefusalReport {
        let latest = entries.with { $0.values.flatMap { $0.reversed() } }.filter(filter.accepts)
        let known = Set(latest.map(\.event))
        var report = RefusalReport()
        for refusal in latest { report.count(refusal) }
        let earlier = store?.latest(most) { refusal in
            guard filter.accepts(refusal), !known.contains(refusal.event) else { return false }
            report.count(refusal)
            return true
        }
        let all = latest + (earlier ?? [])
        report.refusals = Array(all.sorted { $0.time > $1.time }.prefix(most))
        return report
    }
}

/// Which refusals a list has. A nil member accepts all.
package struct RefusalFilter: Sendable {
    /// The app that the request names, or whose host it was sent to.
    package var app: String?
    /// The key id that the request names.
    package var release: String?
    package var code: String?

    package init(app: String? = nil, release: String? = nil, code: String? = nil) {
        (self.app, self.release, self.code) = (app, release, code)
    }

    func accepts(_ refusal: RecentRefusal) -> Bool {
        if let code, refusal.code != code { return false }
        if let release, refusal.named?.release != release { return false }
        guard let app else { return true }
        return refusal.app == app
    }
}

/// A list of refusals, and a count of each cause among all that the filter accepts.
package struct RefusalReport: Sendable {
    /// The refusals of one code.
    package struct Cause: Sendable {
        package var count = 0
        /// Those of which a mistake of the signer was found.
        package var explained = 0
        /// When the latest was refused, in whole Unix seconds.
        package var latest: Int64 = 0
    }

    /// The newest first.
    package fileprivate(set) var refusals: [RecentRefusal] = []
    /// By code.
    package private(set) var causes: [String: Cause] = [:]

    fileprivate mutating func count(_ refusal: RecentRefusal) {
        var cause = causes[refusal.code] ?? Cause()
        cause.count += 1
        if refusal.cause != nil { cause.explained += 1 }
        cause.latest = max(cause.latest, refusal.time)
        causes[refusal.code] = cause
    }
}
