import CountersignWire

/// Safely composed HTML: literals of this program's source are taken unchanged, and every interpolated string
/// is escaped for text and quoted attributes. Network data therefore cannot become a tag.
struct Markup: ExpressibleByStringInterpolation, Sendable {
    private(set) var text: String

    init(stringLiteral text: StaticString) { self.text = text.description }

    init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    static func += (left: inout Markup, right: Markup) { left.text += right.text }

    struct StringInterpolation: StringInterpolationProtocol, Sendable {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: StaticString) { text += literal.description }

        mutating func appendInterpolation(_ other: String) { text += Markup.escaped(other) }

        mutating func appendInterpolation(_ number: Int) { text += String(number) }

        mutating func appendInterpolation(_ markup: Markup) { text += markup.text }

        mutating func appendInterpolation(_ markups: [Markup]) {
            for markup in markups { text += markup.text }
        }
    }

    /// Writes HTTP's line ends as line feeds; ``VisibleText`` shows other control characters by their code.
    private static func escaped(_ text: String) -> String {
        var visible = VisibleText()
        let bytes = visible.take(Array(text.utf8)) + visible.finish()
        var escaped: [UInt8] = []
        escaped.reserveCapacity(bytes.count)
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "&"): escaped += "&amp;".utf8
            case UInt8(ascii: "<"): escaped += "&lt;".utf8
            case UInt8(ascii: ">"): escaped += "&gt;".utf8
            case UInt8(ascii: "\""): escaped += "&quot;".utf8
            case UInt8(ascii: "'"): escaped += "&#39;".utf8
            case UInt8(ascii: "\r"): continue
            default: escaped.append(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}
