import CountersignMemory
import CCrypto
import CountersignTrust
import Glibc

/// One connection to a ``TestServer``, read and written by the thread that serves it; every call waits.
public final class TestConnection {
    private let descriptor: Int32
    private let server: TestServer
    private let tls: OpaquePointer?
    private var pending: [UInt8] = []
    private var records = RecordCount()

    /// Nil where there is no handshake.
    init?(_ descriptor: Int32, _ server: TestServer) {
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
                .records.note(kind, UnsafeRawBufferPointer(start: bytes, count: count))
        }
        SSL_ctrl(tls, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, Unmanaged.passUnretained(self).toOpaque())
        guard SSL_accept(tls) == 1 else {
            ERR_clear_error()
            records.drain(descriptor)
            return nil
        }
        server.state.with { $0.tally.handshakes += 1 }
    }

    deinit {
        SSL_free(tls)
        records.settle()
        server.state.with { $0.tally.records.merge(records.counts) { $0 + $1 } }
    }

    /// What comes next, 64 KiB at most; nil at the end.
    public func read() -> [UInt8]? {
        if !pending.isEmpty {
            defer { pending = [] }
            return pending
        }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count =
            tls.map { Int(SSL_read($0, &bytes, Int32(bytes.count))) } ?? Glibc.read(descriptor, &bytes, bytes.count)
        ERR_clear_error()
        guard count > 0 else { return nil }
        server.state.with { $0.tally.received += count }
        return Array(bytes.prefix(count))
    }

    /// A request's head, up to and with its empty line; nil at the end.
    public func readHead() -> String? {
        var head: [UInt8] = []
        let end: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        while let part = read() {
            head += part
            guard let mark = (0...max(0, head.count - 4)).first(where: { head[$0...].starts(with: end) }) else {
                continue
            }
            pending = Array(head[(mark + 4)...])
            return String(decoding: head[..<(mark + 4)], as: UTF8.self)
        }
        return nil
    }

    /// So many bytes of a body, or fewer where it ends before.
    public func readBody(_ count: Int) -> [UInt8] {
        var body: [UInt8] = []
        while body.count < count, let part = read() { body += part }
        pending = Array(body.dropFirst(count))
        return Array(body.prefix(count))
    }

    /// Whether all of it went out.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> Bool {
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

    /// An answer with a length.
    @discardableResult
    public func answer(_ status: String = "200 OK", _ body: String = "", fields: String = "") -> Bool {
        write(Array("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
    }
}

/// What a server with certificates is made of. Safe to share: not changed after `init`, and OpenSSL locks inside.
final class ServerContext: @unchecked Sendable {
    let pointer: OpaquePointer
    private let staple: [UInt8]

    init(_ identity: TestServer.Identity) throws {
        guard let pointer = SSL_CTX_new(TLS_server_method()), let own = identity.chain.first else {
            throw TestFailure("a TLS context with a certificate")
        }
        self.pointer = pointer
        staple = identity.staple
        // Keys that are too weak are shown, too: that the client refuses them is what is tested.
        SSL_CTX_set_security_level(pointer, 0)
        guard SSL_CTX_use_certificate(pointer, own.pointer) == 1, SSL_CTX_use_PrivateKey(pointer, own.key) == 1 else {
            throw TestFailure("a certificate")
        }
        if identity.newest == .tls12 { cs_ssl_ctx_set_max_proto(pointer, TLS1_2_VERSION) }
        if !identity.suites.isEmpty {
            guard SSL_CTX_set_cipher_list(pointer, identity.suites) == 1 else { throw TestFailure(identity.suites) }
        }
        if identity.masterSecret == .ofRandoms { cs_ssl_ctx_set_plain_master_secret(pointer) }
        for issued in identity.chain.dropFirst() { cs_ssl_ctx_append(pointer, issued.pointer) }
        guard !staple.isEmpty else { return }
        _ = cs_ssl_ctx_give_status(
            pointer,
            { tls, context in
                guard let context else { return SSL_TLSEXT_ERR_NOACK }
                let staple = Unmanaged<ServerContext>.fromOpaque(context).takeUnretainedValue().staple
                return cs_ssl_set_status(tls, staple, staple.count) == 1 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { SSL_CTX_free(pointer) }
}
