/// Text with every character that a terminal would obey made visible: control characters but line feeds and tabs, and those that turn
/// the direction of writing. What a server says, or somebody who called it, must not move the cursor, set the window's title, or
/// show a line as another than it is. Source: Unicode 14.0, general category Cc and property Bidi_Control.
///
/// They are written as `\u001b`: within the strings of JSON, that is the same text.
package struct VisibleText: Sendable {
    /// Bytes at the end of what came so far that may be a part of one character.
    private var begun: [UInt8] = []

    package init() {}

    /// Text that is whole already.
    package static func of(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { isObeyed($0) }) else { return text }
        var visible = ""
        for scalar in text.unicodeScalars {
            visible.unicodeScalars.append(contentsOf: spelled(scalar))
        }
        return visible
    }

    /// Bytes as they come, in pieces of any length. What is not UTF-8 is written as `\xff`.
    package mutating func take(_ bytes: [UInt8]) -> [UInt8] {
        let all = begun + bytes
        var visible: [UInt8] = []
        visible.reserveCapacity(all.count)
        var rest = all[...]
        while let first = rest.first {
            let length = VisibleText.length(first)
            // A line's end of HTTP's; alone it would go back to the line's start.
            let isLineEnd = first == 0x0D && rest.dropFirst().first == 0x0A
            if rest.count < length || (first == 0x0D && rest.count == 1) { break }
            if isLineEnd {
                visible.append(0x0D)
                rest = rest.dropFirst()
            } else if let text = String(utf8: Array(rest.prefix(length))) {
                visible += VisibleText.of(text).utf8
                rest = rest.dropFirst(length)
            } else {
                visible += VisibleText.spelled(first)
                rest = rest.dropFirst()
            }
        }
        begun = Array(rest)
        return visible
    }

    /// What is left at the end: never a whole character.
    package mutating func finish() -> [UInt8] {
        defer { begun = [] }
        return begun.flatMap { VisibleText.spelled($0) }
    }

    /// Of the character that begins so, as far as the first byte tells.
    private static func length(_ first: UInt8) -> Int {
        switch first {
        case 0xC2...0xDF: 2
        case 0xE0...0xEF: 3
        case 0xF0...0xF4: 4
        default: 1
        }
    }

    private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\n", "\t": false
        default: scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
        }
    }

    private static func spelled(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
        guard isObeyed(scalar) else { return String(scalar).unicodeScalars }
        let digits = String(scalar.value, radix: 16)
        return "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)".unicodeScalars
    }

    private static func spelled(_ byte: UInt8) -> [UInt8] { Array("\\x\(Hex.encode([byte].span))".utf8) }
}
