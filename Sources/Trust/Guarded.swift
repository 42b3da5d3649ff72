#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A value that several threads use in turn. A pthread mutex, which the thread sanitizer understands; Swift's own is a
/// futex that it does not know.
package final class Guarded<Value>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    package init(_ value: sending Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` while nobody else has the value. Whatever it waits for, they wait for.
    package func with<Result>(_ body: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&value)
    }
}
