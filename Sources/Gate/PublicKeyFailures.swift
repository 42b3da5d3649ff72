import CountersignSchemes
import CountersignWire
import Glibc

/// How many signatures that do not hold are verified under the public half of a key pair: each costs 50 µs and more.
///
/// Failures count to the pair of key and network. By the key alone a stranger could lock its owner out, by the network
/// alone one caller behind a carrier could lock out all others. Unknown ids count as one key.
///
/// Safe to share: the table is touched under the lock, which is held for one look-up.
package final class PublicKeyFailures: @unchecked Sendable {
    /// So many failures at once, and one more for each `secondsEach`.
    package static let burst = 20
    package static let secondsEach: Int64 = 3

    /// Whose failures are counted together; nil where it is not known where the client calls from.
    struct Place {
        fileprivate let tag: UInt64

        /// `keyID` nil stands for all unknown ids.
        init?(_ keyID: KeyID?, from network: [UInt8]) {
            guard !network.isEmpty else { return nil }
            // Keyed anew in each process: a caller cannot choose which entry it shares.
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
        /// When `left` was last added to.
        var at: Int64 = 0
    }

    private static let ways = 4
    private static let sets = 2_048

    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var entries = [Entry](repeating: Entry(), count: PublicKeyFailures.sets * PublicKeyFailures.ways)

    package init() {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Before the signature is verified. `now` is in whole Unix seconds.
    func check(_ place: Place, at now: Int64) throws(Refusal) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        guard let index = index(of: place) else { return }
        refill(index, at: now)
        guard entries[index].left == 0 else { return }
        throw Refusal(
            .tooManyAttempts, "too many signatures under this key from this network did not hold",
            retryAfter: Int(PublicKeyFailures.secondsEach))
    }

    /// The signature did not hold.
    func count(_ place: Place, at now: Int64) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        let index = index(of: place) ?? indexOfOldest(beside: place)
        if entries[index].tag != place.tag {
            entries[index] = Entry(tag: place.tag, left: PublicKeyFailures.burst, at: now)
        }
        refill(index, at: now)
        if entries[index].left > 0 { entries[index].left -= 1 }
    }

    private func refill(_ index: Int, at now: Int64) {
        let (passed, overflow) = now.subtractingReportingOverflow(entries[index].at)
        // A clock that was set back begins anew.
        guard passed >= 0, !overflow else {
            entries[index].at = now
            return
        }
        let gained = passed / PublicKeyFailures.secondsEach
        guard gained > 0 else { return }
        entries[index].left = Int(min(Int64(PublicKeyFailures.burst), Int64(entries[index].left) &+ min(gained, 1_000)))
        entries[index].at += gained * PublicKeyFailures.secondsEach
    }

    private func set(of place: Place) -> Range<Int> {
        let first = Int(place.tag >> 1 & UInt64(PublicKeyFailures.sets - 1)) * PublicKeyFailures.ways
        return first..<first + PublicKeyFailures.ways
    }

    private func index(of place: Place) -> Int? { set(of: place).first { entries[$0].tag == place.tag } }

    private func indexOfOldest(beside place: Place) -> Int {
        set(of: place).min { entries[$0].at < entries[$1].at } ?? 0
    }
}
