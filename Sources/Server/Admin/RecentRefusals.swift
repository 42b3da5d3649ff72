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

    /// Nil if none was found or looked for.
    package var cause: Cause? { if case .made(let cause, _) = search { cause } else { nil } }
}

/// The refusals that have a line in the log, for the console: the latest in memory, and earlier ones on the
/// disk. In memory, each code has its own slots, so that a flood of one code does not displace the others.
package final class RecentRefusals: Sendable {
    /// The most refusals of one code that the console lists.
    private static let mostListed = 100

    /// Nil without a data folder, as in tests, or if the settings leave no room.
    package let store: RefusalStore?

    static let mostOfCode = 24
    static let longestLine = JSONLine.longest

    /// By code, the oldest first.
    private let entries = Locked<[String: [RecentRefusal]]>([:])

    init(store: RefusalStore? = nil) { self.store = store }

    /// `party` is nil for a caller that has proved nothing.
    func add(_ refusal: RecentRefusal, of party: VerifiedParty? = nil) {
        store?.add(refusal, of: party)
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
        let latest = entries.with { Array(($0[code] ?? []).reversed()) }
        let known = Set(latest.map(\.event))
        let earlier = store?.latest(RecentRefusals.mostListed) {
            $0.code == code && !known.contains($0.event)
        }
        return Array((latest + (earlier ?? [])).prefix(RecentRefusals.mostListed))
    }

    package func refusal(of event: String) -> RecentRefusal? {
        let found = entries.with { entries -> RecentRefusal? in
            for kept in entries.values {
                if let found = kept.first(where: { $0.event == event }) { return found }
            }
            return nil
        }
        return found ?? store?.refusal(of: event)
    }

    /// The codes of the refusals in memory and of the latest ones on the disk.
    package var codes: [String] {
        var codes = entries.with { Set($0.keys) }
        for refusal in store?.latest(RefusalStore.mostRead) ?? [] { codes.insert(refusal.code) }
        return codes.sorted()
    }
}
