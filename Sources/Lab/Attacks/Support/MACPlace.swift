import CountersignWire

/// Where a request bears the MAC that its signer made, so that another can stand there. Whatever the scheme: they all write a name, and
/// behind it hexadecimal digits or Base64.
struct MACPlace: Sendable {
    /// What was there.
    let mac: [UInt8]
    private let before: [UInt8]
    private let after: [UInt8]
    private let spelling: Spelling

    fileprivate enum Spelling: Sendable { case hexadecimal, base64 }

    /// Nil where the request bears none.
    init?(in request: RawRequest) {
        let bytes = request.bytes
        for (name, spelling) in MACPlace.names {
            guard let start = MACPlace.end(of: name, in: bytes) else { continue }
            let text = bytes[start...].prefix { spelling.takes($0) }
            guard let mac = spelling.read(text), mac.count >= 16 else { continue }
            self.mac = mac
            self.spelling = spelling
            before = Array(bytes[..<start])
            after = Array(bytes[text.endIndex...])
            return
        }
        return nil
    }

    /// The request with another MAC of the same length, as it goes over the wire.
    func request(bearing mac: [UInt8]) -> [UInt8] { before + Array(spelling.write(mac).utf8) + after }

    /// What stands before it. Source: docs/protocol.md, a section for each scheme.
    private static let names: [(String, Spelling)] = [
        ("auth_signature=", .hexadecimal), ("\nx-auth-signature: ", .hexadecimal), (", signature=", .hexadecimal),
        ("&sign=", .hexadecimal), ("?sign=", .hexadecimal), ("\nsign=", .hexadecimal), ("\nsignature: ", .base64),
    ]

    /// Where the value begins; of a dictionary's first member, behind its label and the colon.
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

extension MACPlace.Spelling {
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
        case .base64: Base64.decode(text, .standard)
        }
    }

    fileprivate func write(_ mac: [UInt8]) -> String {
        switch self {
        case .hexadecimal: Hex.encode(mac.span)
        case .base64: Base64.encode(mac.span, .standard)
        }
    }
}
