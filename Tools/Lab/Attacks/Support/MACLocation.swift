import CountersignWire

/// The place of the MAC in a request, so that another MAC can replace it. Every scheme writes a name, and
/// after it hexadecimal digits or Base64.
struct MACLocation: Sendable {
    /// The original MAC.
    let mac: [UInt8]
    private let before: [UInt8]
    private let after: [UInt8]
    private let encoding: DigitEncoding

    fileprivate enum DigitEncoding: Sendable { case hexadecimal, base64 }

    /// Nil where the request has no MAC.
    init?(in request: RawRequest) {
        let bytes = request.bytes
        for (name, spelling) in MACLocation.names {
            guard let start = MACLocation.end(of: name, in: bytes) else { continue }
            let text = bytes[start...].prefix { spelling.takes($0) }
            guard let mac = spelling.read(text), mac.count >= 16 else { continue }
            self.mac = mac
            self.encoding = spelling
            before = Array(bytes[..<start])
            after = Array(bytes[text.endIndex...])
            return
        }
        return nil
    }

    /// The request with another MAC of the same length, as it goes over the wire.
    func request(bearing mac: [UInt8]) -> [UInt8] { before + Array(encoding.write(mac).utf8) + after }

    /// The text before the MAC. Source: docs/protocol.md, a section for each scheme.
    private static let names: [(String, DigitEncoding)] = [
        ("auth_signature=", .hexadecimal), ("\nx-auth-signature: ", .hexadecimal),
        (", signature=", .hexadecimal),
        ("&sign=", .hexadecimal), ("?sign=", .hexadecimal), ("\nsign=", .hexadecimal),
        ("\nsignature: ", .base64),
    ]

    /// Where the value begins: in a dictionary, after the first member's label and the colon.
    private static func end(of name: String, in bytes: [UInt8]) -> Int? {
        let name = Array(name.utf8)
        guard bytes.count > name.count else { return nil }
        for start in 0..<(bytes.count - name.count)
        where bytes[start..<start + name.count].elementsEqual(name, by: { ASCII.lowercased($0) == $1 }) {
            let value = start + name.count
            guard name.last == UInt8(ascii: " "), name.starts(with: "\nsignature".utf8) else { return value }
            return bytes[value...].firstIndex(of: UInt8(ascii: ":")).map { $0 + 1 }
        }
        return nil
    }
}

extension MACLocation.DigitEncoding {
    fileprivate func takes(_ byte: UInt8) -> Bool {
        switch self {
        case .hexadecimal: ASCII.isDigit(byte) || (0x61...0x66).contains(byte)
        case .base64: byte != UInt8(ascii: ":")
        }
    }

    fileprivate func read(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        let text = String(decoding: bytes, as: UTF8.self)
        return switch self {
        case .hexadecimal: Hex.decode(text)
        case .base64: Base64.decode(text, as: .standard)
        }
    }

    fileprivate func write(_ mac: [UInt8]) -> String {
        switch self {
        case .hexadecimal: Hex.encode(mac.span)
        case .base64: Base64.encode(mac.span, as: .standard)
        }
    }
}
