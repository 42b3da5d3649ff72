/// Markup of a page. Text that is inserted into it is always escaped, so that a name that a user chose is
/// never read as markup:
///
///     "<td>\(account)</td>"
///
/// A value in an attribute stands between quotes, which are escaped, too. Source: HTML Living Standard
/// §13.2.5.
struct HTML: Sendable, ExpressibleByStringInterpolation {
    private(set) var text: String

    static let none: HTML = ""

    init(stringLiteral markup: String) { text = markup }

    init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        mutating func appendLiteral(_ markup: String) { text += markup }

        mutating func appendInterpolation(_ inserted: String) { text += HTML.escaped(inserted) }

        mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }

        mutating func appendInterpolation(_ markup: HTML) { text += markup.text }

        mutating func appendInterpolation(_ parts: [HTML]) { for part in parts { text += part.text } }
    }

    static func + (left: HTML, right: HTML) -> HTML { "\(left)\(right)" }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            // Letters that turn the direction of the text around them would let a name pose as another.
            case "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}", "\u{200E}", "\u{200F}":
                escaped += "\u{FFFD}"
            case "\u{0}"..."\u{8}", "\u{B}", "\u{C}", "\u{E}"..."\u{1F}", "\u{7F}": escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
