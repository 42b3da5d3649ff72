import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import Glibc

/// Requests of a command to the admin listener of a server on this machine: one connection each, with bounded
/// waits.
struct AdminClient {
    private static let seconds = 5
    private static let mostBytes = 8 << 20

    let address: HostPort
    private let token: Secret

    /// `address` is where the server listens.
    init(at address: HostPort, tokenAt path: String) throws(OperationalError) {
        guard let token = try KeyFile.read(path) else {
            throw OperationalError(.unreachable, message: "\(path): no server has run on this data folder")
        }
        self.token = token
        let loopback = ["0.0.0.0": "127.0.0.1", "::": "::1"]
        self.address = HostPort(host: loopback[address.host] ?? address.host, port: address.port)
        // The token is sent as it is, and the server takes drills from this machine alone.
        guard ServiceURL.isLoopback(host: self.address.host) else {
            throw OperationalError(
                .usage,
                message: "--admin: expected an address of this machine, and not `\(self.address.host)`")
        }
    }

    func get(_ path: String) throws(OperationalError) -> (status: Int, body: [UInt8]) {
        try send("GET \(path) HTTP/1.1", body: [])
    }

    func post(_ body: JSONValue, to path: String) throws(OperationalError) -> (status: Int, body: [UInt8]) {
        try send("POST \(path) HTTP/1.1", body: Array(body.text.utf8))
    }

    private func send(_ start: String, body: [UInt8]) throws(OperationalError) -> (status: Int, body: [UInt8])
    {
        let socket = try connected()
        let head =
            "\(start)\r\nHost: \(address)\r\nConnection: close\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.count)\r\nAuthorization: Bearer "
        var bytes = Array(head.utf8)
        token.withExposedBytes { token in for index in token.indices { bytes.append(token[index]) } }
        bytes += Array("\r\n\r\n".utf8) + body
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket.number, $0.baseAddress.map { $0 + sent }, bytes.count - sent, 0x4000)
            }
            guard count > 0 else { throw failure("cannot send") }
            sent += count
        }
        return try parse(received(from: socket))
    }

    private func received(from socket: FileDescriptor) throws(OperationalError) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < AdminClient.mostBytes {
            let count = part.withUnsafeMutableBytes { recv(socket.number, $0.baseAddress, $0.count, 0) }
            if count == 0 { return bytes }
            guard count > 0 else { throw failure("no answer") }
            bytes += part[..<count]
        }
        throw failure("the answer is too long")
    }

    /// The server sends a length with each answer, and closes after it.
    private func parse(_ bytes: [UInt8]) throws(OperationalError) -> (status: Int, body: [UInt8]) {
        let text = String(decoding: bytes.prefix(12), as: UTF8.self)
        let end = Array("\r\n\r\n".utf8)
        let place = bytes.indices.first { bytes[$0...].starts(with: end) }
        guard let place, text.hasPrefix("HTTP/1.1 "), let status = Int(text.dropFirst(9)) else {
            throw failure("not an answer of the admin listener")
        }
        return (status, Array(bytes[(place + end.count)...]))
    }

    private func connected() throws(OperationalError) -> FileDescriptor {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let host = address.host == "localhost" ? "127.0.0.1" : address.host
        guard getaddrinfo(host, String(address.port), &hints, &list) == 0, let found = list?.pointee else {
            throw OperationalError(.usage, message: "--admin: expected an address of this machine")
        }
        defer { freeaddrinfo(list) }
        let number = Glibc.socket(found.ai_family, found.ai_socktype | 0o2000000, 0)
        guard number >= 0 else { throw failure("no socket") }
        let socket = FileDescriptor(owning: number)
        var patience = timeval(tv_sec: AdminClient.seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(number, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(number, found.ai_addr, found.ai_addrlen) == 0 else {
            throw failure("no server answers there; expected the --admin of a running one")
        }
        return socket
    }

    private func failure(_ text: String) -> OperationalError {
        OperationalError(.unreachable, message: "\(address): \(text)")
    }
}
