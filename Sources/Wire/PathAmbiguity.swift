extension PathReadings {
    /// The part of a path that backends may interpret differently; nil if all backends interpret the path
    /// alike, so that ``PathMatch`` can compare its bytes.
    static func ambiguity(of path: Span<UInt8>) -> StaticString? {
        var start = 1
        var isPlain = true
        for index in 0...path.count {
            guard index == path.count || path[index] == UInt8(ascii: "/") else {
                switch path[index] {
                case UInt8(ascii: "%"):
                    isPlain = false
                    if let flaw = flaw(ofEscape: path.extracting(index...)) { return flaw }
                case UInt8(ascii: "\\"): return "a backslash"
                case UInt8(ascii: ";"): return "a parameter of a segment"
                case UInt8(ascii: "#"), UInt8(ascii: "?"): return "the end of a path within it"
                case 0..<0x21, 0x7F...: return "a byte that is no visible ASCII"
                default: break
                }
                continue
            }
            guard index >= start else { continue }
            if let flaw = flaw(ofSegment: path.extracting(start..<index)) { return flaw }
            if index == start, index < path.count { return "an empty segment" }
            start = index + 1
        }
        return isPlain ? nil : flaw(ofEscapesIn: path)
    }

    private static func flaw(ofSegment name: Span<UInt8>) -> StaticString? {
        guard name.count > 0 else { return nil }
        if name.matches(".") || name.matches("..") { return "a dot segment" }
        // What Windows leaves out, and with it `.. ` is `..`.
        if name[name.count - 1] == UInt8(ascii: ".") { return "a segment that ends in a dot" }
        let isSpaceLast = name.count >= 3 && name.extracting((name.count - 3)...).matches("%20")
        return isSpaceLast ? "a segment that ends in a space" : nil
    }

    /// Escapes that some readers undo before they look for a route. Source: RFC 3986 §2.3, §6.2.2.2.
    private static func flaw(ofEscape text: Span<UInt8>) -> StaticString? {
        guard let byte = PercentEncoding.byte(in: text, at: 1) else { return "a bare %" }
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "\\"): return "an encoded slash"
        case 0..<0x20, 0x7F: return "an encoded control character"
        case UInt8(ascii: "%"): return "an encoded %, which some undo twice"
        case UInt8(ascii: ";"): return "an encoded semicolon"
        case UInt8(ascii: "?"), UInt8(ascii: "#"): return "an encoded end of the path"
        default: return PercentEncoding.isUnreserved(byte) ? "an encoded unreserved character" : nil
        }
    }

    /// What is wrong with what the escapes stand for together. It must be UTF-8 of the one form there is:
    /// nothing longer than it need be, which some read as the character that it would be (RFC 3629 §3, §10).
    /// And it must hold none of the four letters which, where case is left out of account, are ASCII's
    /// (Unicode's CaseFolding.txt and Python's `re`).
    private static func flaw(ofEscapesIn path: Span<UInt8>) -> StaticString? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            let escaped =
                path[index] == UInt8(ascii: "%") ? PercentEncoding.byte(in: path, at: index + 1) : nil
            bytes.append(escaped ?? path[index])
            index += escaped == nil ? 1 : 3
        }
        guard bytes.span.firstIllFormedUTF8 == nil else { return "an escape that is no UTF-8" }
        for index in bytes.indices {
            switch bytes[index] {
            // U+0130 and U+0131, U+017F, U+212A. What follows is there, for this is UTF-8.
            case 0xC4 where bytes[index + 1] == 0xB0 || bytes[index + 1] == 0xB1: return foldsToASCII
            case 0xC5 where bytes[index + 1] == 0xBF: return foldsToASCII
            case 0xE2 where bytes[index + 1] == 0x84 && bytes[index + 2] == 0xAA: return foldsToASCII
            default: continue
            }
        }
        return nil
    }

    private static let foldsToASCII: StaticString = "a letter that some take for one of ASCII"
}
