import CountersignTestServer
import Glibc

/// A client that checks nothing and sends any bytes to any server. Blocking; the `async` calls wait on a
/// thread of their own.
package struct RawClient: Sendable {
    /// The layer below HTTP.
    package enum Security: Sendable {
        case none
        /// TLS that accepts any certificate; `name` is sent in the handshake (SNI).
        case unchecked(name: String, TLSEndpoint)

        /// The same, with current TLS versions.
        package static func unchecked(_ name: String) throws(NetworkError) -> Security {
            .unchecked(name: name, try TLSEndpoint.client())
        }
    }

    package let host: String
    package let port: UInt16
    package let security: Security

    /// `host` is a name or an address.
    package init(host: String = "127.0.0.1", port: UInt16, security: Security) {
        self.host = host
        self.port = port
        self.security = security
    }

    /// A new connection after its handshake.
    package func open() throws(NetworkError) -> RawConnection {
        switch security {
        case .none: try RawConnection.open(to: host, port: port)
        case .unchecked(let name, let side):
            try RawConnection.open(to: host, port: port, as: side, name: name)
        }
    }

    /// Sends bytes on a new connection, and reads one response. `method` is the request's: responses to HEAD
    /// have no body.
    package func exchange(_ bytes: [UInt8], method: String) throws(NetworkError)
        -> MessageReader.ParsedMessage<RawResponse>
    {
        let link = try open()
        // A server may respond and close before it has read the whole request: only the response decides, not
        // the success of the write.
        link.write(bytes)
        var reader = MessageReader(link)
        return try reader.response(to: method)
    }

    /// Sends a request unchanged.
    package func send(_ request: RawRequest) async throws -> RawResponse {
        try await DedicatedThread.run { try exchange(request.bytes, method: request.method).message }
    }

    /// Sends the same bytes on `count` connections at once. All handshakes are complete before the first byte
    /// is sent.
    package func send(_ bytes: [UInt8], parallel count: Int) async throws -> [RawResponse] {
        let method = String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self)
        let start = StartBarrier(count)
        return try await withThrowingTaskGroup(of: RawResponse.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await DedicatedThread.run {
                        let link: RawConnection
                        do { link = try open() } catch {
                            start.wait()
                            throw error
                        }
                        start.wait()
                        link.write(bytes)
                        var reader = MessageReader(link)
                        return try reader.response(to: method).message
                    }
                }
            }
            var answers: [RawResponse] = []
            while let answer = try await group.next() { answers.append(answer) }
            return answers
        }
    }
}

/// Releases a number of threads at the same moment. Safe to share: the barrier is made for threads, and lives
/// as long as this object.
final class StartBarrier: @unchecked Sendable {
    private let barrier = UnsafeMutablePointer<pthread_barrier_t>.allocate(capacity: 1)

    init(_ count: Int) { pthread_barrier_init(barrier, nil, UInt32(max(1, count))) }

    deinit {
        pthread_barrier_destroy(barrier)
        barrier.deallocate()
    }

    /// Waits until all threads have arrived.
    func wait() { pthread_barrier_wait(barrier) }
}
