import CountersignWire
import Glibc

/// The part of a head that requests and responses share: where it ends, and its field lines.
enum FieldLines {
    /// Looks for the empty line that ends a head, one line at a time, and remembers how far it has come, so that a
    /// head that arrives byte by byte is looked at once.
    struct EndScanner {
        private var lineStart = 0
        private var scanned = 0

        /// The offset behind the empty line; nil where it has not arrived yet. A line that ends in a bare LF is
        /// refused here, before the rest is waited for.
        mutating func end(in bytes: Span<UInt8>) throws(Refusal) -> Int? {
            while let lineFeed = FieldLines.firstLineFeed(in: bytes, from: scanned) {
                guard lineFeed > lineStart, bytes[lineFeed - 1] == Octet.carriageReturn else {
                    throw Refusal(.malformed, "a line ends in LF without CR")
                }
                let isEmptyLine = lineFeed - 1 == lineStart
                lineStart = lineFeed + 1
                scanned = lineStart
                if isEmptyLine { return lineStart }
            }
            scanned = bytes.count
            return nil
        }
    }

    private static func firstLineFeed(in bytes: Span<UInt8>, from start: Int) -> Int? {
        guard start < bytes.count else { return nil }
        return bytes.withUnsafeBytes { all -> Int? in
            guard let base = all.baseAddress,
                let hit = memchr(base + start, Int32(Octet.lineFeed), all.count - start)
            else { return nil }
            return UnsafeRawPointer(hit) - base
        }
    }

    /// Whether a name among the field lines of a head holds an underscore.
    enum Underscores { case none, some }

    /// Reads the field lines in `start..<end`, where `end` is behind the empty line.
    ///
    /// No obs-fold, no white space before the colon, no empty name, no control character. Source: RFC 9112 §5.
    @discardableResult
    static func parse(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, limit: Int, into fields: inout [Request.Field]
    ) throws(Refusal) -> Underscores {
        var underscores = Underscores.none
        var position = start
        while position < end - 2 {
            let nameStart = position
            position = Octet.endOfLettersAndHyphens(in: bytes, from: position)
            while true {
                while Octet.isTokenWithoutUnderscore(bytes[position]) { position += 1 }
                guard bytes[position] == Octet.underscore else { break }
                underscores = .some
                position += 1
            }
            guard bytes[position] == Octet.colon, position > nameStart else {
                throw refusal(of: bytes[position], isLineStart: position == nameStart)
            }
            let name = Slice(nameStart, position)
            position += 1
            while bytes[position] == Octet.space || bytes[position] == Octet.tab { position += 1 }
            let valueStart = position
            position = Octet.endOfFieldValue(in: bytes, from: position)
            var valueEnd = position
            guard bytes[position] == Octet.carriageReturn, bytes[position + 1] == Octet.lineFeed else {
                throw Refusal(.malformed, "a field value holds the control character \(hex(bytes[position]))")
            }
            position += 2
            while valueEnd > valueStart, bytes[valueEnd - 1] == Octet.space || bytes[valueEnd - 1] == Octet.tab {
                valueEnd -= 1
            }
            guard fields.count < limit else { throw Refusal(.tooLarge, "more than \(limit) header fields") }
            fields.append(Request.Field(name: name, value: Slice(valueStart, valueEnd)))
        }
        return underscores
    }

    /// Copies the chosen lines as they stand in `head`, neighbours in one go.
    static func copy(_ fields: [Request.Field], where chosen: FieldMask, of head: Span<UInt8>, to output: Buffer) {
        var index = 0
        while index < fields.count {
            guard chosen.contains(index) else {
                index += 1
                continue
            }
            let start = Int(fields[index].name.start)
            while index < fields.count, chosen.contains(index) { index += 1 }
            // A line ends where the next one begins, the last before the empty line.
            let end = index < fields.count ? Int(fields[index].name.start) : head.count - 2
            head.extracting(start..<end).withUnsafeBytes { _ = output.append($0) }
        }
    }

    private static func refusal(of byte: UInt8, isLineStart: Bool) -> Refusal {
        switch byte {
        case Octet.space, Octet.tab:
            Refusal(
                .malformed,
                isLineStart ? "a header line is folded over two lines" : "white space stands before a header's colon")
        case Octet.colon: Refusal(.malformed, "a header field has no name")
        default: Refusal(.malformed, "a field name holds the byte \(hex(byte))")
        }
    }

    static func hex(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return "0x" + (digits.count == 1 ? "0" + digits : digits)
    }

    /// A decimal number of at most 18 digits: nothing that overflows, no sign, no white space.
    static func decimal(_ bytes: Span<UInt8>, _ slice: Slice) -> Int? {
        guard slice.count > 0, slice.count <= 18 else { return nil }
        var value = 0
        for index in slice.range {
            let byte = bytes[index]
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return value
    }

    /// Whether the bytes at `slice`, compared without case, are `text` (which is lower-case).
    static func equals(_ bytes: Span<UInt8>, _ slice: Slice, _ text: StaticString) -> Bool {
        guard slice.count == text.utf8CodeUnitCount else { return false }
        for offset in 0..<slice.count
        where Octet.lowercased(bytes[Int(slice.start) + offset]) != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether two runs of the same bytes are equal but for case.
    static func equals(_ bytes: Span<UInt8>, _ left: Slice, _ right: Slice) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count
        where Octet.lowercased(bytes[Int(left.start) + offset]) != Octet.lowercased(bytes[Int(right.start) + offset]) {
            return false
        }
        return true
    }

    static func starts(_ bytes: Span<UInt8>, with text: StaticString) -> Bool {
        guard bytes.count >= text.utf8CodeUnitCount else { return false }
        for offset in 0..<text.utf8CodeUnitCount where bytes[offset] != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether `bytes` begin with `text` (which is lower-case), compared without case.
    static func starts(_ bytes: Span<UInt8>, withCaseless text: StaticString) -> Bool {
        guard bytes.count >= text.utf8CodeUnitCount else { return false }
        return equals(bytes, Slice(0, text.utf8CodeUnitCount), text)
    }

    /// Whether a comma-separated list holds `member` (lower-case), compared without case.
    static func hasMember(_ member: StaticString, in slice: Slice, of bytes: Span<UInt8>) -> Bool {
        var rest = slice
        while let next = nextMember(of: &rest, in: bytes) {
            if equals(bytes, next, member) { return true }
        }
        return false
    }

    /// Takes the next member, trimmed, off the front of a comma-separated list; nil at its end.
    static func nextMember(of rest: inout Slice, in bytes: Span<UInt8>) -> Slice? {
        while !rest.isEmpty {
            var start = Int(rest.start)
            var stop = start
            let end = Int(rest.end)
            while stop < end, bytes[stop] != UInt8(ascii: ",") { stop += 1 }
            rest = Slice(min(stop + 1, end), end)
            while start < stop, bytes[start] == Octet.space || bytes[start] == Octet.tab { start += 1 }
            while stop > start, bytes[stop - 1] == Octet.space || bytes[stop - 1] == Octet.tab { stop -= 1 }
            if stop > start { return Slice(start, stop) }
        }
        return nil
    }
}
