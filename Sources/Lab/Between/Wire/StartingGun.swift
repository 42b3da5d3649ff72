import Glibc

/// Lets so many threads go at the same moment. Safe to share: the library's barrier is made for it, and lives as long as this.
final class StartingGun: @unchecked Sendable {
    private let barrier = UnsafeMutablePointer<pthread_barrier_t>.allocate(capacity: 1)

    init(_ count: Int) { pthread_barrier_init(barrier, nil, UInt32(max(1, count))) }

    deinit {
        pthread_barrier_destroy(barrier)
        barrier.deallocate()
    }

    /// Until as many are here.
    func wait() { pthread_barrier_wait(barrier) }
}
