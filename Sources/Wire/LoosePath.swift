/// A path as the most lenient backend reads it: escapes decoded, twice if they are escaped twice; overlong
/// UTF-8 decoded; backslashes as slashes; parameters of segments, empty segments and dot segments removed;
/// without case, and without the characters that Windows ignores at the end of a name. For detecting which
/// path a request means, never for serving one.
package struct LoosePath: Sendable {
    /// Escapes undone, in lower case. The segments are slices of it: a path may have one for every other
    /// byte.
    private let text: [UInt8]
    private let names: [Range<Int>]

    package init(_ path: Span<UInt8>) {
        var text = LoosePath.percentDecoded(path)
        // No server is known to decode more than twice.
        for _ in 0..<2 where text.contains(UInt8(ascii: "%")) { text = LoosePath.percentDecoded(text.span) }
        for index in text.indices { text[index] = ASCII.lowercased(text[index]) }
        self.text = text
        names = LoosePath.names(in: text.span)
    }

    /// How many segments there are.
    package var count: Int { names.count }

    package var segments: [[UInt8]] { names.map { Array(text[$0]) } }

    package subscript(index: Int) -> ArraySlice<UInt8> { text[names[index]] }

    private static func names(in text: Span<UInt8>) -> [Range<Int>] {
        var names: [Range<Int>] = []
        var next = 0
        while next < text.count {
            let start = next
            while next < text.count, text[next] != UInt8(ascii: "/"), text[next] != UInt8(ascii: "\\") {
                next += 1
            }
            var end = start
            while end < next, !endsName(text[end]) { end += 1 }
            next += 1
            while end > start, text[end - 1] <= 0x20 { end -= 1 }
            if text.extracting(start..<end).matches("..") {
                _ = names.popLast()
                continue
            }
            while end > start, text[end - 1] <= 0x20 || text[end - 1] == UInt8(ascii: ".") { end -= 1 }
            if end > start { names.append(start..<end) }
        }
        return names
    }

    /// Whether what follows in a segment is no part of its name.
    private static func endsName(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ";") || byte == UInt8(ascii: "?") || byte == 0
    }

    /// Whether a path has anything in it by which it could mean `/login/….php`. Most have not, and cost no
    /// more than this.
    package static func isWorthReading(_ path: Span<UInt8>) -> Bool {
        for index in path.indices where path[index] == UInt8(ascii: "%") || path[index] == UInt8(ascii: ".") {
            return true
        }
        return false
    }

    private static func percentDecoded(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            var byte = text[index]
            if byte == UInt8(ascii: "%"), let value = PercentEncoding.byte(in: text, at: index + 1) {
                byte = value
                index += 2
            }
            index += 1
            if byte & 0xC0 == 0x80, let upper = takeOverlongLead(from: &bytes) {
                byte = upper << 6 | byte & 0x3F
            }
            bytes.append(byte)
        }
        return bytes
    }

    /// Of two, three or four bytes for what one would say, all but the last, where `bytes` ends in them: the
    /// last but one has the upper bit, and those before say nothing. Source: RFC 3629 §3, §10.
    private static func takeOverlongLead(from bytes: inout [UInt8]) -> UInt8? {
        let count = bytes.count
        guard let last = bytes.last else { return nil }
        if last & 0xFE == 0xC0 {
            bytes.removeLast()
        } else if last & 0xFE == 0x80, count >= 2, bytes[count - 2] == 0xE0 {
            bytes.removeLast(2)
        } else if last & 0xFE == 0x80, count >= 3, bytes[count - 2] == 0x80, bytes[count - 3] == 0xF0 {
            bytes.removeLast(3)
        } else {
            return nil
        }
        return last & 1
    }

    /// Whether it could be `route`, or goes on behind it; also as `route` with an extension.
    package func isAtOrBelow(_ route: LoosePath) -> Bool {
        guard route.count > 0 else { return true }
        let last = route.count - 1
        guard count > last, (0..<last).allSatisfy({ self[$0] == route[$0] }) else { return false }
        let (here, name) = (self[last], route[last])
        return here == name
            || here.starts(with: name) && here.dropFirst(name.count).first == UInt8(ascii: ".")
    }
}

extension LoosePath {
    /// The part of a path that backends may interpret differently; nil if all backends interpret the path
    /// alike, so that route rules can compare its bytes.
    package static func ambiguity(of path: Span<UInt8>) -> StaticString? {
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
