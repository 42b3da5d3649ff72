import CountersignWire

/// A host and a port of a listener: `127.0.0.1:8443`, `[::1]:8443`, `gate.example.com:443`.
public struct HostPort: Sendable, Equatable, CustomStringConvertible {
    /// A name or an address, IPv6 without its brackets.
    public var host: String
    /// 0 asks for any free port.
    public var port: UInt16

    /// From its parts.
    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// From `HOST:PORT`; nil where the text is not that.
    public init?(_ text: String) {
        guard let (host, port) = HostPort.split(text), let port else { return nil }
        self.init(host: host, port: port)
    }

    /// `HOST:PORT`, IPv6 in brackets.
    public var description: String { "\(HostPort.bracketed(host)):\(port)" }

    package static func bracketed(_ host: String) -> String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    }

    /// The host of `HOST` or `HOST:PORT`, and the port if it is given. An IPv6 address needs brackets:
    /// without them its last group cannot be told from a port.
    package static func split(_ text: String) -> (host: String, port: UInt16?)? {
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<close]
            rest = text[text.index(after: close)...]
            guard host.contains(":"), host.utf8.allSatisfy({ isHexDigit($0) || $0 == 0x3A || $0 == 0x2E })
            else {
                return nil
            }
        } else {
            let colon = text.firstIndex(of: ":") ?? text.endIndex
            host = text[..<colon]
            rest = text[colon...]
            guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy(isNameByte) else { return nil }
        }
        if rest.isEmpty { return (String(host), nil) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(digits)
        else { return nil }
        return (String(host), port)
    }

    /// Whether it means every address of this machine.
    var isOfAllAddresses: Bool { host == "0.0.0.0" || host == "::" }

    /// Whether a peer's address, with its port, is of this machine's loopback interface.
    package static func isOfThisMachine(peer: String) -> Bool {
        guard let host = split(peer)?.host else { return false }
        let mapped = "::ffff:"
        return ServiceURL.isLoopback(
            host: host.hasPrefix(mapped) ? String(host.dropFirst(mapped.count)) : host)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        case UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }
}
