import CountersignMemory
import CountersignSchemes
import CountersignWire

/// Limits how many failing signatures are verified with the public key of a pair: each costs 50 µs or more.
///
/// Failures are counted for each pair of key and network. Counted by key alone, a stranger could lock out its
/// owner; counted by network alone, one caller behind a carrier could lock out all others. Unknown ids count
/// as one key.
package final class PublicKeyFailureLimiter: Sendable {
    /// The number of failures allowed at once; one more is allowed every `secondsEach` seconds.
    package static let burst = 20
    package static let secondsEach: Int64 = 3

    /// The key and network whose failures are counted together; nil if the client's network is unknown.
    struct FailureKey {
        fileprivate let tag: UInt64

        /// `keyID` nil stands for all unknown ids.
        init?(_ keyID: KeyID?, from network: [UInt8]) {
            guard !network.isEmpty else { return nil }
            // The hash has a new key in each process, so a caller cannot choose which entry it shares.
            var hasher = Hasher()
            hasher.combine(network)
            hasher.combine(keyID)
            tag = UInt64(bitPattern: Int64(hasher.finalize())) | 1
        }
    }

    private struct Entry {
        /// 0 in an unused entry.
        var tag: UInt64 = 0
        var left = 0
        /// When `left` last increased.
        var at: Int64 = 0
    }

    private let table = Locked(Table())

    package init() {}

    /// Call this before verifying the signature. `now` is in whole Unix seconds.
    func check(_ place: FailureKey, at now: Int64) throws(Refusal) {
        guard table.with({ $0.isUsedUp(place, at: now) }) else { return }
        throw Refusal(
            .tooManyAttempts, detail: "too many signatures under this key from this network did not hold",
            retryAfter: Int(PublicKeyFailureLimiter.secondsEach))
    }

    /// Call this when the signature did not verify.
    func recordFailure(of place: FailureKey, at now: Int64) {
        table.with { $0.recordFailure(of: place, at: now) }
    }
}

extension PublicKeyFailureLimiter {
    /// The failures of the keys and networks that failed last; each has its place in one of many small sets.
    private struct Table {
        private static let ways = 4
        private static let sets = 2_048

        private var entries = [Entry](repeating: Entry(), count: Table.sets * Table.ways)

        mutating func isUsedUp(_ place: FailureKey, at now: Int64) -> Bool {
            guard let index = index(of: place) else { return false }
            refill(index, at: now)
            return entries[index].left == 0
        }

        mutating func recordFailure(of place: FailureKey, at now: Int64) {
            let index = index(of: place) ?? indexOfOldest(beside: place)
            if entries[index].tag != place.tag {
                entries[index] = Entry(tag: place.tag, left: PublicKeyFailureLimiter.burst, at: now)
            }
            refill(index, at: now)
            if entries[index].left > 0 { entries[index].left -= 1 }
        }

        private mutating func refill(_ index: Int, at now: Int64) {
            let (passed, overflow) = now.subtractingReportingOverflow(entries[index].at)
            // Start anew after the clock was set back.
            guard passed >= 0, !overflow else {
                entries[index].at = now
                return
            }
            let gained = passed / PublicKeyFailureLimiter.secondsEach
            guard gained > 0 else { return }
            entries[index].left = Int(
                min(Int64(PublicKeyFailureLimiter.burst), Int64(entries[index].left) &+ min(gained, 1_000)))
            entries[index].at += gained * PublicKeyFailureLimiter.secondsEach
        }

        private func set(of place: FailureKey) -> Range<Int> {
            let first =
                Int(place.tag >> 1 & UInt64(Table.sets - 1)) * Table.ways
            return first..<first + Table.ways
        }

        private func index(of place: FailureKey) -> Int? {
            set(of: place).first { entries[$0].tag == place.tag }
        }

        private func indexOfOldest(beside place: FailureKey) -> Int {
            set(of: place).min { entries[$0].at < entries[$1].at } ?? 0
        }
    }
}
