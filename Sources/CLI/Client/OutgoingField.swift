import CountersignWire

extension Draft.Field {
    /// `NAME: VALUE` as `-H` has it.
    static func read(_ text: String) throws(Fault) -> Draft.Field {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.allSatisfy(isToken) else {
            throw Fault(.usage, "-H `\(text)`: expected NAME: VALUE")
        }
        let value = parts[1].drop { $0 == " " || $0 == "\t" }
        guard value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
            throw Fault(.usage, "-H `\(parts[0])`: the value holds a control character")
        }
        var trimmed = String(value)
        while trimmed.last == " " || trimmed.last == "\t" { trimmed.removeLast() }
        return Draft.Field(String(parts[0]), trimmed)
    }

    /// A `tchar`. Source: RFC 9110 §5.6.2.
    static func isToken(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
