import CountersignTestKit
import Glibc
import Synchronization

/// A listening port on 127.0.0.1 that gives each connection a thread of its own.
package final class PublicPort: Sendable {
    package let number: UInt16
    private let listener: Int32
    private let state = Mutex(State())

    private struct State {
        var open: Set<Int32> = []
        var isStopped = false
    }

    /// `serve` is called on a thread of its own for each connection, with a descriptor that it has to close.
    package init(_ serve: @escaping @Sendable (Int32) -> Void) throws(StageFault) {
        (listener, number) = try Socket.listen()
        TestThread.start { [self] in accept(serve) }
    }

    /// Cuts the connections there are.
    package func cutConnections() {
        state.withLock { for descriptor in $0.open { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    /// Cuts all connections, and takes no more.
    package func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            // Ends the waiting `accept`, whose thread closes the socket.
            shutdown(listener, Int32(SHUT_RDWR))
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    private func accept(_ serve: @escaping @Sendable (Int32) -> Void) {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var yes: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            let isWanted = state.withLock { state in
                if !state.isStopped { state.open.insert(descriptor) }
                return !state.isStopped
            }
            guard isWanted else {
                close(descriptor)
                break
            }
            TestThread.start { [self] in
                // Of its own, so that nobody cuts a number that was closed and given out again.
                let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                if copy >= 0 { serve(copy) }
                state.withLock { _ = $0.open.remove(descriptor) }
                close(descriptor)
            }
        }
        close(listener)
    }
}
