import CCrypto
import Glibc

/// Counts a client's TLS records as they come off the socket, below what a handshake lets through: application data in a handshake
/// that fails is counted, too. One thread's.
struct RecordCount {
    /// By content type.
    private(set) var counts: [UInt8: Int] = [:]
    /// The type outside of a record that TLS 1.3 may still open; one that it does not open is what it says.
    private var unopened: UInt8?

    /// What OpenSSL tells of records, `kind` being its pseudo content types: each record's header, and the type inside of those that
    /// it opened. Source: SSL_set_msg_callback(3).
    mutating func note(_ kind: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let type = bytes.first else { return }
        if kind == SSL3_RT_HEADER {
            settle()
            unopened = type
        } else if kind == SSL3_RT_INNER_CONTENT_TYPE {
            unopened = nil
            counts[type, default: 0] += 1
        }
    }

    /// Counts a record that was not opened, and will not be.
    mutating func settle() {
        guard let type = unopened else { return }
        unopened = nil
        counts[type, default: 0] += 1
    }

    /// Reads and counts the records that are left once OpenSSL has given up, until the client closes or keeps still for a second.
    mutating func drain(_ descriptor: Int32) {
        settle()
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        while let header = RecordCount.read(5, descriptor) {
            counts[header[0], default: 0] += 1
            guard RecordCount.read(Int(header[3]) << 8 | Int(header[4]), descriptor) != nil else { return }
        }
    }

    private static func read(_ count: Int, _ descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(descriptor, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }
}
