import CountersignWire

/// What a proxy in front says about a connection before its first byte: the PROXY protocol, version 1 (a line
/// of text) and version 2 (binary). Source: HAProxy, doc/proxy-protocol.txt, §2.
package struct ProxyHeader: Sendable, Equatable {
    /// Where the client called the proxy from; nil where the proxy speaks for itself (LOCAL, a health check)
    /// or does not know (UNKNOWN, UNSPEC).
    package var client: NetworkAddress?
    package var port: UInt16 = 0
}

/// Reads a header as its bytes come, and takes no byte that stands behind it: that is the client's.
package struct ProxyHeaderReader {
    /// The specification's bound for version 1, the line's end included.
    private static let longestLine = 107
    /// Of version 2, behind its 16 fixed bytes: addresses, and what some proxies say of the client's certificate.
    private static let longestBody = 2_048
    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let word = Array("PROXY ".utf8)

    private var bytes: [UInt8] = []
    /// Of version 2, once the fixed bytes are there.
    private var length = Int.max

    package init() {}

    /// Takes bytes off the front of `input`: how many, and the header once it is whole.
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
        guard bytes[count - 2] != Octet.carriageReturn || last == Octet.lineFeed else {
            throw refusal("it holds a bare CR")
        }
        guard last == Octet.lineFeed else {
            guard Octet.isFieldValue(last) || last == Octet.carriageReturn else {
                throw refusal("it holds a control character")
            }
            return nil
        }
        guard bytes[count - 2] == Octet.carriageReturn else { throw refusal("its line ends in LF without CR") }
        return try line(bytes[word.count..<count - 2])
    }

    /// `TCP4 192.0.2.1 198.51.100.2 50000 443`, or `UNKNOWN` and whatever follows.
    private func line(_ text: ArraySlice<UInt8>) throws(Refusal) -> ProxyHeader {
        let parts = text.split(separator: Octet.space, omittingEmptySubsequences: false)
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
        // What is visible is checked first: the C function would stop at NUL.
        guard text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.contains(Octet.colon) == isIPv6 else { return nil }
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
        guard let command = Command(rawValue: bytes[12]) else { throw refusal("its version or command is unknown") }
        // The proxy itself calls; whatever else it says is not to be read.
        guard command == .proxy else { return ProxyHeader() }
        guard let family = Family(rawValue: bytes[13]) else { throw refusal("its addresses are neither TCP4 nor TCP6") }
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

    /// A type, a length in two bytes, and so many bytes; none of them means anything here.
    private func checkExtensions(from start: Int) throws(Refusal) {
        var position = start
        while position < bytes.count {
            guard position + 3 <= bytes.count else { throw refusal("an extension is cut short") }
            position += 3 + Int(bytes[position + 1]) << 8 + Int(bytes[position + 2])
        }
        guard position == bytes.count else { throw refusal("an extension is cut short") }
    }

    private func refusal(_ reason: String) -> Refusal { Refusal(.malformed, "the proxy's PROXY header: \(reason)") }
}
