import CountersignAuthority
import Glibc

/// Keyed requests that run in this process now, and the copies that wait for how they end. One for all loops.
///
/// Safe to share: everything is touched under the lock. A copy that waits is a connection of its own, of which there is a
/// bound, and waits no longer than ``patience``.
final class RunningRequests: @unchecked Sendable {
    /// How a request ended, for the copies that waited.
    enum Ending: Sendable {
        case answered(KeptAnswer)
        /// It was not done: whoever comes next may look again.
        case dropped
        case unknown
    }

    enum Entrance: Sendable {
        /// Nobody runs it: the caller now does, and must ``leave(_:_:)``.
        case ours
        case ended(Ending)
        /// Another request runs under the key.
        case otherRequest
        /// It still runs, and this copy has waited long enough.
        case runsOn
    }

    /// Seconds that a copy waits, give or take the interval of ``expire(at:)``.
    static let patience: Int64 = 20

    private struct Name: Hashable {
        var scope: IdempotencyScope
        var key: [UInt8]

        init(_ request: IdempotentRequest) {
            scope = request.scope
            key = request.key
        }
    }

    private struct Waiter {
        var until: Int64
        var continuation: UnsafeContinuation<Entrance, Never>
    }

    private struct Entry {
        var digest: [UInt8]
        var waiters: [Waiter] = []
    }

    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var entries: [Name: Entry] = [:]

    init() { pthread_mutex_init(lock, nil) }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// `now` is in seconds of a clock that nobody sets.
    func enter(_ request: IdempotentRequest, at now: Int64) async -> Entrance {
        await withUnsafeContinuation { continuation in
            let entrance = hold { () -> Entrance? in
                let name = Name(request)
                guard let entry = entries[name] else {
                    entries[name] = Entry(digest: request.digest)
                    return .ours
                }
                guard entry.digest == request.digest else { return .otherRequest }
                let waiter = Waiter(until: now + RunningRequests.patience, continuation: continuation)
                entries[name]?.waiters.append(waiter)
                return nil
            }
            if let entrance { continuation.resume(returning: entrance) }
        }
    }

    /// Called once by whom ``enter(_:at:)`` let in.
    func leave(_ request: IdempotentRequest, _ ending: Ending) {
        let waiters = hold { entries.removeValue(forKey: Name(request))?.waiters ?? [] }
        for waiter in waiters { waiter.continuation.resume(returning: .ended(ending)) }
    }

    /// Lets those go that have waited long enough.
    func expire(at now: Int64) {
        var late: [Waiter] = []
        hold {
            for name in Array(entries.keys) {
                guard let entry = entries[name], entry.waiters.contains(where: { $0.until <= now }) else { continue }
                late += entry.waiters.filter { $0.until <= now }
                entries[name]?.waiters.removeAll { $0.until <= now }
            }
        }
        for waiter in late { waiter.continuation.resume(returning: .runsOn) }
    }

    private func hold<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body()
    }
}
