import CountersignTestKit

/// A client without scruples: sends what it is given to whoever listens, and checks nothing. Blocking; the `async` calls wait on a thread
/// of their own.
package struct RawClient: Sendable {
    /// What lies below HTTP.
    package enum Security: Sendable {
        case none
        /// TLS that takes any certificate; the name is said in the handshake (SNI).
        case unchecked(name: String, TLSSide)

        /// The same, with the versions of today.
        package static func unchecked(_ name: String) throws(NetworkProblem) -> Security {
            .unchecked(name: name, try TLSSide.client())
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

    /// A new connection, with its handshake done.
    package func open() throws(NetworkProblem) -> Link {
        switch security {
        case .none: try Link.open(to: host, port: port)
        case .unchecked(let name, let side): try Link.open(to: host, port: port, as: side, name: name)
        }
    }

    /// Sends bytes on a connection of their own, and reads one answer. `method` is that of the request: answers to HEAD have no body.
    package func exchange(_ bytes: [UInt8], method: String) throws(NetworkProblem) -> MessageReader.Read<RawResponse> {
        let link = try open()
        // A server may answer before it has read all, and then close: so what it said counts, not whether all was sent.
        link.write(bytes)
        var reader = MessageReader(link)
        return try reader.response(to: method)
    }

    /// Sends a request as it is.
    package func send(_ request: RawRequest) async throws -> RawResponse {
        try await Blocking.run { try exchange(request.bytes, method: request.method).message }
    }

    /// Sends the same bytes on so many connections at once. All are open, handshakes done, before the first byte goes out.
    package func send(_ bytes: [UInt8], parallel count: Int) async throws -> [RawResponse] {
        let method = String(decoding: bytes.prefix { $0 != 0x20 }, as: UTF8.self)
        let start = StartingGun(count)
        return try await withThrowingTaskGroup(of: RawResponse.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await Blocking.run {
                        let link: Link
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
