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

    /// Whether a mistake of the signer was looked for that explains the refusal.
    package enum Search: Sendable {
        case notMade
        /// `notes` are the gate's requirements that the signature does not meet.
        case made(Cause?, notes: [String])
    }

    /// Nil if none was found or looked for.
    package var cause: Cause? { if case .made(let cause, _) = search { cause } else { nil } }
}

/// The latest refusals that have a line in the log, for the console, in memory. Each code has a place of its
/// own, so that a flood of one does not push out the others.
package final class RecentRefusals: Sendable {
    static let mostOfCode = 24
    static let longestLine = 4_096

    /// By code, the oldest first.
    private let entries = Locked<[String: [RecentRefusal]]>([:])

    init() {}

    func add(_ refusal: RecentRefusal) {
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

    /// Those of one code, the latest first.
    package func all(of code: String) -> [RecentRefusal] {
        entries.with { Array(($0[code] ?? []).reversed()) }
    }

    package func refusal(of event: String) -> RecentRefusal? {
        entries.with { entries in
            for kept in entries.values {
                if let found = kept.first(where: { $0.event == event }) { return found }
            }
            return nil
        }
    }

    /// The codes that there are refusals of.
    package var codes: [String] { entries.with { $0.keys.sorted() } }
}
