import CCrypto
import CountersignMemory
import CountersignTrust
import Glibc

/// One connection to a ``TestServer``. The thread that serves it reads and writes it; every call blocks.
package final class TestConnection {
    private let descriptor: Int32
    private let server: TestServer
    private let tls: OpaquePointer?
    private var pending: [UInt8] = []
    private var records = TLSRecordCounter()

    /// Performs the server's TLS handshake; nil if it fails.
    init?(_ descriptor: Int32, server: TestServer) {
        self.descriptor = descriptor
        self.server = server
        guard let context = server.context else {
            tls = nil
            return
        }
        guard let tls = SSL_new(context.pointer) else { return nil }
        SSL_set_fd(tls, descriptor)
        self.tls = tls
        SSL_set_msg_callback(tls) { isWritten, _, kind, bytes, count, _, connection in
            guard isWritten == 0, let connection else { return }
            Unmanaged<TestConnection>.fromOpaque(connection).takeUnretainedValue()
                .records.note(kind, bytes: UnsafeRawBufferPointer(start: bytes, count: count))
        }
        SSL_ctrl(tls, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, Unmanaged.passUnretained(self).toOpaque())
        guard SSL_accept(tls) == 1 else {
            ERR_clear_error()
            records.drain(descriptor)
            return nil
        }
        let isResumed = SSL_session_reused(tls) == 1
        server.state.with { state in
            state.tally.handshakes += 1
            if isResumed { state.tally.resumptions += 1 }
        }
    }

    deinit {
        SSL_free(tls)
        records.settle()
        server.state.with { $0.tally.records.merge(records.counts) { $0 + $1 } }
    }

    /// The next received bytes, at most 64 KiB; nil at the end of the input.
    package func read() -> [UInt8]? {
        if !pending.isEmpty {
            defer { pending = [] }
            return pending
        }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count =
            tls.map { Int(SSL_read($0, &bytes, Int32(bytes.count))) }
            ?? Glibc.read(descriptor, &bytes, bytes.count)
        ERR_clear_error()
        guard count > 0 else { return nil }
        server.state.with { $0.tally.received += count }
        return Array(bytes.prefix(count))
    }

    /// A request's head, including its empty line; nil at the end of the input.
    package func readHead() -> String? {
        var head: [UInt8] = []
        let end: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        while let part = read() {
            head += part
            guard let mark = (0...max(0, head.count - 4)).first(where: { head[$0...].starts(with: end) })
            else {
                continue
            }
            pending = Array(head[(mark + 4)...])
            return String(decoding: head[..<(mark + 4)], as: UTF8.self)
        }
        return nil
    }

    /// `count` bytes of a body, or fewer if the input ends first.
    package func readBody(_ count: Int) -> [UInt8] {
        var body: [UInt8] = []
        while body.count < count, let part = read() { body += part }
        pending = Array(body.dropFirst(count))
        return Array(body.prefix(count))
    }

    /// Writes all of `bytes`; false if the connection ends first.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { rest in
                tls.map { Int(SSL_write($0, rest.baseAddress, Int32(rest.count))) }
                    ?? Glibc.write(descriptor, rest.baseAddress, rest.count)
            }
            ERR_clear_error()
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Writes a response with a `Content-Length`.
    @discardableResult
    package func answer(_ status: String = "200 OK", body: String = "", fields: String = "") -> Bool {
        write(Array("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
    }
}

/// The TLS context of a server. Safe to share: it does not change after `init`, and OpenSSL locks its
/// mutable state.
final class TestServerContext: @unchecked Sendable {
    let pointer: OpaquePointer
    private let staple: [UInt8]

    init(_ identity: TestServer.Credentials) throws {
        guard let pointer = SSL_CTX_new(TLS_server_method()), let own = identity.chain.first else {
            throw TestServerError("a TLS context with a certificate")
        }
        self.pointer = pointer
        staple = identity.staple
        // Level 0 also allows weak keys, so that tests can show that the client refuses them.
        SSL_CTX_set_security_level(pointer, 0)
        guard SSL_CTX_use_certificate(pointer, own.pointer) == 1,
            SSL_CTX_use_PrivateKey(pointer, own.key) == 1
        else {
            throw TestServerError("a certificate")
        }
        if identity.newest == .tls12 { cs_ssl_ctx_set_max_proto(pointer, TLS1_2_VERSION) }
        if !identity.suites.isEmpty {
            guard SSL_CTX_set_cipher_list(pointer, identity.suites) == 1 else {
                throw TestServerError(identity.suites)
            }
        }
        if identity.masterSecret == .ofRandoms { cs_ssl_ctx_set_plain_master_secret(pointer) }
        for issued in identity.chain.dropFirst() { cs_ssl_ctx_append(pointer, issued.pointer) }
        guard !staple.isEmpty else { return }
        _ = cs_ssl_ctx_give_status(
            pointer,
            { tls, context in
                guard let context else { return SSL_TLSEXT_ERR_NOACK }
                let staple = Unmanaged<TestServerContext>.fromOpaque(context).takeUnretainedValue().staple
                return cs_ssl_set_status(tls, staple, staple.count) == 1
                    ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { SSL_CTX_free(pointer) }
}

/// Counts a client's TLS records as they are read from the socket, so that application data in a failed
/// handshake is also counted. Used by one thread.
struct TLSRecordCounter {
    /// The number of records by content type.
    private(set) var counts: [UInt8: Int] = [:]
    /// The outer type of a record that OpenSSL may still decrypt (TLS 1.3); if it does not, the outer type
    /// counts.
    private var unopened: UInt8?

    /// Handles OpenSSL's message callback. `kind` is a pseudo content type: for each record's header, or
    /// for the inner type of a decrypted record. Source: SSL_set_msg_callback(3).
    mutating func note(_ kind: Int32, bytes: UnsafeRawBufferPointer) {
        guard let type = bytes.first else { return }
        if kind == SSL3_RT_HEADER {
            settle()
            unopened = type
        } else if kind == SSL3_RT_INNER_CONTENT_TYPE {
            unopened = nil
            counts[type, default: 0] += 1
        }
    }

    /// Counts a record that was not decrypted, by its outer type.
    mutating func settle() {
        guard let type = unopened else { return }
        unopened = nil
        counts[type, default: 0] += 1
    }

    /// Reads and counts the remaining records after a failed handshake, until the client closes or is
    /// silent for a second.
    mutating func drain(_ descriptor: Int32) {
        settle()
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        while let header = TLSRecordCounter.read(5, descriptor: descriptor) {
            counts[header[0], default: 0] += 1
            guard TLSRecordCounter.read(Int(header[3]) << 8 | Int(header[4]), descriptor: descriptor) != nil
            else { return }
        }
    }

    private static func read(_ count: Int, descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(descriptor, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }
}
