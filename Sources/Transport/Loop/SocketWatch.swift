import CCurl
import Glibc

/// Wakes the transport's thread while it waits for sockets.
final class WakeupSignal: Sendable {
    /// Readable from ``send()`` to ``clear()``.
    let descriptor: Int32

    init?() {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    func send() { eventfd_write(descriptor, 1) }

    func clear() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
    }
}

/// What the transport's thread waits for: the signal, the sockets that libcurl names, and libcurl's timer.
/// Confined to that thread.
final class SocketWatch {
    /// A socket and what it is ready for, in libcurl's terms.
    typealias Readiness = (socket: curl_socket_t, events: Int32)

    private let signal: WakeupSignal
    /// The signal's descriptor, and behind it the sockets.
    private var entries: [pollfd]
    /// The sockets that the last wait found ready.
    private(set) var ready: [Readiness] = []
    /// When libcurl's timer ends, nanoseconds of the system's monotonic clock; `max` without a timer, 0 if it
    /// ends at once.
    private var timerEnd = UInt64.max

    init(_ signal: WakeupSignal) {
        self.signal = signal
        entries = [pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)]
    }

    /// Takes from libcurl what to wait for at a socket.
    func watch(_ socket: curl_socket_t, for what: Int32) {
        let events: Int32 =
            switch what {
            case CURL_POLL_IN: POLLIN
            case CURL_POLL_OUT: POLLOUT
            case CURL_POLL_INOUT: POLLIN | POLLOUT
            default: 0
            }
        let known = entries.indices.dropFirst().first { entries[$0].fd == socket }
        switch (known, events) {
        case (let index?, 0):
            entries.swapAt(index, entries.count - 1)
            entries.removeLast()
        case (let index?, _): entries[index].events = Int16(events)
        case (nil, 0): break
        case (nil, _): entries.append(pollfd(fd: socket, events: Int16(events), revents: 0))
        }
    }

    /// Takes from libcurl in how many milliseconds it wants to be called; none if that is negative.
    func setTimer(milliseconds: Int) {
        switch milliseconds {
        case ..<0: timerEnd = .max
        case 0: timerEnd = 0
        default: timerEnd = DeviceClock.system.monotonic() + UInt64(milliseconds) * 1_000_000
        }
    }

    /// Whether the timer has ended; then it is no longer set.
    func takeTimer() -> Bool {
        guard timerEnd == 0 || (timerEnd < .max && timerEnd <= DeviceClock.system.monotonic()) else {
            return false
        }
        timerEnd = .max
        return true
    }

    /// Waits for a socket, the signal or the timer; at most `milliseconds`.
    func wait(milliseconds: Int32) {
        ready.removeAll(keepingCapacity: true)
        guard poll(&entries, nfds_t(entries.count), min(milliseconds, untilTimer())) > 0 else { return }
        if entries[0].revents != 0 { signal.clear() }
        for entry in entries.dropFirst() where entry.revents != 0 {
            // An error or a lost connection is found by reading or writing, whichever libcurl waits for.
            let events =
                (entry.events & Int16(POLLIN) != 0 && entry.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0
                    ? CURL_CSELECT_IN : 0)
                | (entry.events & Int16(POLLOUT) != 0
                    && entry.revents & Int16(POLLOUT | POLLHUP | POLLERR) != 0
                    ? CURL_CSELECT_OUT : 0)
            ready.append((entry.fd, events == 0 ? CURL_CSELECT_ERR : events))
        }
    }

    /// Milliseconds until the timer ends.
    private func untilTimer() -> Int32 {
        guard timerEnd < .max else { return .max }
        let now = DeviceClock.system.monotonic()
        guard timerEnd > now else { return 0 }
        return Int32(min(60_000, (timerEnd - now) / 1_000_000 + 1))
    }

    /// The sockets that the last wait found ready, once.
    func takeReady() -> [Readiness] {
        guard !ready.isEmpty else { return [] }
        defer { ready.removeAll(keepingCapacity: true) }
        return ready
    }
}
