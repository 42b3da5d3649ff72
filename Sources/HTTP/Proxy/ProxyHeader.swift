import CountersignWire
import Glibc

/// The header that a proxy sends at the start of a connection: the PROXY protocol, version 1 (a line of
/// text) and version 2 (binary). Source: HAProxy, doc/proxy-protocol.txt, §2.
package struct ProxyHeader: Sendable, Equatable {
    /// The client's address; nil if the proxy itself is the client (LOCAL, a health check) or does not know
    /// it (UNKNOWN, UNSPEC).
    package var client: NetworkAddress?
    package var port: UInt16 = 0
}

/// Parses a header incrementally, and consumes no byte after it, because those are the client's.
package struct ProxyHeaderReader {
    /// The specification's limit for version 1, including CRLF.
    private static let longestLine = 107
    /// The limit for version 2 after its 16 fixed bytes: addresses and extensions, such as the client's
    /// certificate.
    private static let longestBody = 2_048
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let word = Array("PROXY ".utf8)

    private var bytes: [UInt8] = []
    /// The length of a version 2 header, once its fixed bytes are read.
    private var length = Int.max

    package init() {}

    /// Consumes bytes from the front of `input`; returns their number, and the header when it is complete.
    package mutating func take(_ input: Span<UInt8>) throws(Refusal) -> (count: Int, header: ProxyHeader?) {
        for index in input.indices {
            bytes.append(input[index])
            if let header = try bytes[0] == ProxyHeaderReader.signature[0] ? checkBinary() : checkLine() {
                return (index + 1, header)
            }
        }
        return (input.count, nil)
    }

    // MARK: Version 1

    private func checkLine() throws(Refusal) -> ProxyHeader? {
        let word = ProxyHeaderReader.word
        let count = bytes.count
        guard count > word.count else {
            guard bytes[count - 1] == word[count - 1] else { throw refusal("it does not begin as one") }
            return nil
        }
        guard count <= ProxyHeaderReader.longestLine else { throw refusal("its line is over 107 bytes") }
        let last = bytes[count - 1]
        guard bytes[count - 2] != OctetClass.carriageReturn || last == OctetClass.lineFeed else {
            throw refusal("it holds a bare CR")
        }
        guard last == OctetClass.lineFeed else {
            guard OctetClass.isFieldValue(last) || last == OctetClass.carriageReturn else {
                throw refusal("it holds a control character")
            }
            return nil
        }
        guard bytes[count - 2] == OctetClass.carriageReturn else {
            throw refusal("its line ends in LF without CR")
        }
        return try line(bytes[word.count..<count - 2])
    }

    /// Parses `TCP4 192.0.2.1 198.51.100.2 50000 443`, or `UNKNOWN` followed by any text.
    private func line(_ text: ArraySlice<UInt8>) throws(Refusal) -> ProxyHeader {
        let parts = text.split(separator: OctetClass.space, omittingEmptySubsequences: false)
        guard let family = parts.first else { throw refusal("it names no protocol") }
        if family.elementsEqual("UNKNOWN".utf8) { return ProxyHeader() }
        let isIPv6 = family.elementsEqual("TCP6".utf8)
        guard isIPv6 || family.elementsEqual("TCP4".utf8), parts.count == 5,
            let client = address(parts[1], isIPv6: isIPv6), address(parts[2], isIPv6: isIPv6) != nil,
            let port = port(parts[3]), self.port(parts[4]) != nil
        else { throw refusal("expected TCP4 or TCP6, two addresses and two ports") }
        return ProxyHeader(client: client, port: port)
    }

    private func address(_ text: ArraySlice<UInt8>, isIPv6: Bool) -> NetworkAddress? {
        // Only visible characters are allowed; this includes the check for NUL, which would end the text
        // for `inet_pton`.
        guard text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.contains(OctetClass.colon) == isIPv6 else {
            return nil
        }
        return NetworkAddress(text: String(decoding: text, as: UTF8.self))
    }

    private func port(_ text: ArraySlice<UInt8>) -> UInt16? {
        guard (1...5).contains(text.count), text.allSatisfy(ASCII.isDigit),
            text.first != UInt8(ascii: "0") || text.count == 1
        else { return nil }
        return UInt16(String(decoding: text, as: UTF8.self))
    }

    // MARK: Version 2

    private enum Command: UInt8 { case local = 0x20, proxy = 0x21 }
    private enum Family: UInt8 { case unspecified = 0x00, tcp4 = 0x11, tcp6 = 0x21 }

    private mutating func checkBinary() throws(Refusal) -> ProxyHeader? {
        let count = bytes.count
        if count <= ProxyHeaderReader.signature.count {
            guard bytes[count - 1] == ProxyHeaderReader.signature[count - 1] else {
                throw refusal("it does not begin as one")
            }
        } else if count == 16 {
            length = 16 + Int(bytes[14]) << 8 + Int(bytes[15])
            guard length <= 16 + ProxyHeaderReader.longestBody else { throw refusal("it is over 2 KiB") }
        }
        guard count == length else { return nil }
        return try binary()
    }

    private func binary() throws(Refusal) -> ProxyHeader {
        guard let command = Command(rawValue: bytes[12]) else {
            throw refusal("its version or command is unknown")
        }
        // LOCAL: the proxy itself is the client, and the specification says to ignore the rest of the
        // header.
        guard command == .proxy else { return ProxyHeader() }
        guard let family = Family(rawValue: bytes[13]) else {
            throw refusal("its addresses are neither TCP4 nor TCP6")
        }
        let size: Int
        switch family {
        case .unspecified: return ProxyHeader()
        case .tcp4: size = 4
        case .tcp6: size = 16
        }
        let extensions = 16 + 2 * size + 4
        guard bytes.count >= extensions else { throw refusal("it is shorter than its addresses") }
        try checkExtensions(from: extensions)
        let port = UInt16(bytes[16 + 2 * size]) << 8 | UInt16(bytes[17 + 2 * size])
        return ProxyHeader(client: NetworkAddress(bytes: bytes.span.extracting(16..<16 + size)), port: port)
    }

    /// Checks the extensions' framing: a type, a length in two bytes, and as many bytes. Their contents are
    /// ignored.
    private func checkExtensions(from start: Int) throws(Refusal) {
        var position = start
        while position < bytes.count {
            guard position + 3 <= bytes.count else { throw refusal("an extension is cut short") }
            position += 3 + Int(bytes[position + 1]) << 8 + Int(bytes[position + 2])
        }
        guard position == bytes.count else { throw refusal("an extension is cut short") }
    }

    private func refusal(_ reason: String) -> Refusal {
        Refusal(.malformed, detail: "the proxy's PROXY header: \(reason)")
    }
}

/// Whether connections begin with a PROXY header.
public enum ProxyProtocol: String, Sendable {
    /// No connection does; the engine refuses a PROXY header as a malformed request.
    case off
    /// Connections of trusted proxies must begin with one. All others must not: a client that could send a
    /// header could choose its address.
    case require
}

extension Stream {
    private static let piece = 256

    /// Reads a PROXY header and leaves the bytes after it in the socket, from which OpenSSL reads them.
    /// Call it before ``startTLS(_:as:)``.
    func receiveProxyHeader() async throws(StreamError) -> Result<ProxyHeader, Refusal> {
        var reader = ProxyHeaderReader()
        var piece = [UInt8](repeating: 0, count: Stream.piece)
        while true {
            guard !isClosed else { throw .closed }
            let count = recv(descriptor, &piece, piece.count, Int32(MSG_PEEK))
            guard count > 0 else {
                guard count < 0, errno == EAGAIN || errno == EINTR else { throw .closed }
                try await untilInput()
                continue
            }
            do throws(Refusal) {
                let taken = try reader.take(piece.span.extracting(0..<count))
                // The bytes that MSG_PEEK returned are in the socket, so this call does not wait; it
                // removes only those of the header.
                guard recv(descriptor, &piece, taken.count, 0) == taken.count else {
                    throw Refusal(.malformed, detail: "closed")
                }
                if let header = taken.header { return .success(header) }
            } catch {
                return .failure(error)
            }
        }
    }
}
