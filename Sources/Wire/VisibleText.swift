/// Text in which every character that controls a terminal is escaped: control characters except line feeds
/// and tabs, and characters that change the writing direction. Text from a server or its callers must not
/// move the cursor, set the window's title or disguise a line. Source: Unicode 14.0, general category Cc and
/// property Bidi_Control.
///
/// The escape has the form `\u001b`, which means the same text within a JSON string.
package struct VisibleText: Sendable {
    /// Bytes at the end of the input so far that may be part of one character.
    private var pending: [UInt8] = []

    package init() {}

    /// Escapes a complete text.
    package static func of(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { isControl($0) }) else { return text }
        var visible = ""
        for scalar in text.unicodeScalars {
            visible.unicodeScalars.append(contentsOf: spelled(scalar))
        }
        return visible
    }

    /// Escapes bytes as they arrive, in pieces of any length. Bytes that are not UTF-8 are written as `\xff`.
    package mutating func take(_ bytes: [UInt8]) -> [UInt8] {
        let all = pending + bytes
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
        pending = Array(rest)
        return visible
    }

    /// What is left at the end: never a whole character.
    package mutating func finish() -> [UInt8] {
        defer { pending = [] }
        return pending.flatMap { VisibleText.spelled($0) }
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

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\n", "\t": false
        default: scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
        }
    }

    private static func spelled(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
        guard isControl(scalar) else { return String(scalar).unicodeScalars }
        let digits = String(scalar.value, radix: 16)
        return "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)".unicodeScalars
    }

    private static func spelled(_ byte: UInt8) -> [UInt8] { Array("\\x\(Hex.encode([byte].span))".utf8) }
}
