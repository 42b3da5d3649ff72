import CountersignGate
import CountersignWire
import Glibc

/// Wakes a thread that waits with `poll`. Safe to share.
final class WakeSocket: Sendable {
    private let sender: FileDescriptor
    private let receiver: FileDescriptor

    /// `SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK`, enumerators of a C type that Swift imports beside some
    /// modules only.
    private static let type: Int32 = 1 | 0o2000000 | 0o4000

    init() throws(OperationalError) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, WakeSocket.type, 0, &ends) == 0 else {
            throw OperationalError(
                .failed, message: "cannot make a pair of sockets: \(String(cString: strerror(errno)))")
        }
        (sender, receiver) = (FileDescriptor(owning: ends[0]), FileDescriptor(owning: ends[1]))
    }

    /// The descriptor that has input once ``send()`` was called.
    var descriptor: Int32 { receiver.number }

    /// Where the socket is full, the thread is woken already.
    func send() {
        var byte: UInt8 = 1
        _ = write(sender.number, &byte, 1)
    }

    func clear() {
        var bytes = [UInt8](repeating: 0, count: 512)
        while read(receiver.number, &bytes, bytes.count) == bytes.count {}
    }

    /// Waits until ``send()`` is called, or the time is over.
    func wait(milliseconds: Int) {
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&waited, 1, Int32(clamping: milliseconds))
    }
}
