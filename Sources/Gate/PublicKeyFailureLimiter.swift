import CountersignSchemes
import CountersignWire
import Glibc

/// Limits how many failing signatures are verified with the public key of a pair: each costs 50 µs or more.
///
/// Failures are counted for each pair of key and network. Counted by key alone, a stranger could lock out its
/// owner; counted by network alone, one caller behind a carrier could lock out all others. Unknown ids count
/// as one key.
///
/// Safe to share: the table is accessed under the lock, which is held for one look-up.
package final class PublicKeyFailureLimiter: @unchecked Sendable {
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

    private static let ways = 4
    private static let sets = 2_048

    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var entries = [Entry](
        repeating: Entry(), count: PublicKeyFailureLimiter.sets * PublicKeyFailureLimiter.ways)

    package init() {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Call this before verifying the signature. `now` is in whole Unix seconds.
    func check(_ place: FailureKey, at now: Int64) throws(Refusal) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        guard let index = index(of: place) else { return }
        refill(index, at: now)
        guard entries[index].left == 0 else { return }
        throw Refusal(
            .tooManyAttempts, detail: "too many signatures under this key from this network did not hold",
            retryAfter: Int(PublicKeyFailureLimiter.secondsEach))
    }

    /// Call this when the signature did not verify.
    func recordFailure(of place: FailureKey, at now: Int64) {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        let index = index(of: place) ?? indexOfOldest(beside: place)
        if entries[index].tag != place.tag {
            entries[index] = Entry(tag: place.tag, left: PublicKeyFailureLimiter.burst, at: now)
        }
        refill(index, at: now)
        if entries[index].left > 0 { entries[index].left -= 1 }
    }

    private func refill(_ index: Int, at now: Int64) {
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
            Int(place.tag >> 1 & UInt64(PublicKeyFailureLimiter.sets - 1)) * PublicKeyFailureLimiter.ways
        return first..<first + PublicKeyFailureLimiter.ways
    }

    private func index(of place: FailureKey) -> Int? { set(of: place).first { entries[$0].tag == place.tag } }

    private func indexOfOldest(beside place: FailureKey) -> Int {
        set(of: place).min { entries[$0].at < entries[$1].at } ?? 0
    }
}
