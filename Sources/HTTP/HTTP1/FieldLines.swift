import CountersignWire
import Glibc

/// Parses the common part of request and response heads: the field lines and the head's end.
enum FieldLines {
    /// Searches for the empty line that ends a head, and stores its position, so that a head that arrives
    /// byte by byte is scanned only once.
    struct EndScanner {
        private var lineStart = 0
        private var scanned = 0

        var isAtStart: Bool { scanned == 0 }

        /// The offset after the empty line; nil if it has not arrived yet. Refuses a line that ends in a
        /// bare LF at once, before the rest of the head has arrived.
        mutating func end(in bytes: Span<UInt8>) throws(Refusal) -> Int? {
            while let lineFeed = FieldLines.firstLineFeed(in: bytes, from: scanned) {
                guard lineFeed > lineStart, bytes[lineFeed - 1] == OctetClass.carriageReturn else {
                    throw Refusal(.malformed, detail: "a line ends in LF without CR")
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
                let hit = memchr(base + start, Int32(OctetClass.lineFeed), all.count - start)
            else { return nil }
            return UnsafeRawPointer(hit) - base
        }
    }

    /// Whether any field name of a head contains an underscore.
    enum Underscores { case none, some }

    /// Parses the field lines in `start..<end`, where `end` is the offset after the empty line.
    ///
    /// No obs-fold, no white space before the colon, no empty name, no control character. Source: RFC 9112
    /// §5.
    @discardableResult
    static func parse(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, limit: Int, into fields: inout [Request.Field]
    ) throws(Refusal) -> Underscores {
        var underscores = Underscores.none
        var position = start
        while position < end - 2 {
            let nameStart = position
            position = OctetClass.endOfLettersAndHyphens(in: bytes, from: position)
            while true {
                while OctetClass.isTokenWithoutUnderscore(bytes[position]) { position += 1 }
                guard bytes[position] == OctetClass.underscore else { break }
                underscores = .some
                position += 1
            }
            guard bytes[position] == OctetClass.colon, position > nameStart else {
                throw refusal(of: bytes[position], isLineStart: position == nameStart)
            }
            let name = ByteRange(from: nameStart, to: position)
            position += 1
            while bytes[position] == OctetClass.space || bytes[position] == OctetClass.tab { position += 1 }
            let valueStart = position
            position = OctetClass.endOfFieldValue(in: bytes, from: position)
            var valueEnd = position
            guard bytes[position] == OctetClass.carriageReturn, bytes[position + 1] == OctetClass.lineFeed
            else {
                throw Refusal(
                    .malformed, detail: "a field value holds the control character \(hex(bytes[position]))")
            }
            position += 2
            while valueEnd > valueStart,
                bytes[valueEnd - 1] == OctetClass.space || bytes[valueEnd - 1] == OctetClass.tab
            {
                valueEnd -= 1
            }
            guard fields.count < limit else {
                throw Refusal(.tooLarge, detail: "more than \(limit) header fields")
            }
            fields.append(Request.Field(name: name, value: ByteRange(from: valueStart, to: valueEnd)))
        }
        return underscores
    }

    /// The fields that are passed on in either direction, of those that are not in `endingHere`.
    static func passedOn(_ fields: [Request.Field], except endingHere: FieldMask) -> FieldMask {
        var chosen = FieldMask.all.subtracting(endingHere)
        for index in fields.indices where fields[index].traits.staysHere {
            chosen.remove(index)
        }
        return chosen
    }

    /// Copies the chosen lines from `head` byte for byte, adjacent lines together; and before them the bytes
    /// from `start` to the first line.
    static func copy(
        _ fields: [Request.Field], where chosen: FieldMask, of head: Span<UInt8>, from start: Int,
        to output: Buffer
    ) {
        guard !fields.isEmpty else { return }
        let others = FieldMask.all.subtracting(chosen)
        var start = start
        var index = 0
        while true {
            let end = min(others.firstIndex(from: index), fields.count)
            // A line ends where the next one begins; the last line ends at the empty line.
            let stop = end < fields.count ? Int(fields[end].name.start) : head.count - 2
            if start < stop { head.extracting(start..<stop).withUnsafeBytes { _ = output.append($0) } }
            index = chosen.firstIndex(from: end)
            guard index < fields.count else { return }
            start = Int(fields[index].name.start)
        }
    }

    private static func refusal(of byte: UInt8, isLineStart: Bool) -> Refusal {
        switch byte {
        case OctetClass.space, OctetClass.tab:
            Refusal(
                .malformed,
                detail: isLineStart
                    ? "a header line is folded over two lines" : "white space stands before a header's colon")
        case OctetClass.colon: Refusal(.malformed, detail: "a header field has no name")
        default: Refusal(.malformed, detail: "a field name holds the byte \(hex(byte))")
        }
    }

    static func hex(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return "0x" + (digits.count == 1 ? "0" + digits : digits)
    }

    /// A decimal number of at most 18 digits: nothing that overflows, no sign, no white space.
    static func decimal(in bytes: Span<UInt8>, at slice: ByteRange) -> Int? {
        guard slice.count > 0, slice.count <= 18 else { return nil }
        var value = 0
        for index in slice.range {
            let byte = bytes[index]
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return value
    }

    /// Whether the bytes at `slice` equal `text`, ignoring case; `text` has only lower-case letters, digits
    /// and the punctuation between them.
    static func equals(in bytes: Span<UInt8>, at slice: ByteRange, text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard slice.count == count else { return false }
        let found = bytes.extracting(slice.range).bytes
        let expected = UnsafeRawPointer(text.utf8Start)
        func differs<Word: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as _: Word.Type) -> Word {
            let word = expected.loadUnaligned(fromByteOffset: offset, as: Word.self)
            // Bit 6 is set in the letters alone, and bit 5 tells their cases.
            let letters = word >> 1 & Word(truncatingIfNeeded: 0x2020_2020_2020_2020 as UInt64)
            return (found.unsafeLoadUnaligned(fromByteOffset: offset, as: Word.self) | letters) ^ word
        }
        var offset = 0
        while offset + 8 <= count {
            guard differs(at: offset, as: UInt64.self) == 0 else { return false }
            offset += 8
        }
        // The last word overlaps the one before it.
        if count >= 8 { return differs(at: count - 8, as: UInt64.self) == 0 }
        if count >= 4 {
            return differs(at: 0, as: UInt32.self) | differs(at: count - 4, as: UInt32.self) == 0
        }
        while offset < count {
            guard differs(at: offset, as: UInt8.self) == 0 else { return false }
            offset += 1
        }
        return true
    }

    /// Whether two ranges of the same bytes are equal, ignoring case.
    static func equals(in bytes: Span<UInt8>, left: ByteRange, right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count
        where OctetClass.lowercased(bytes[Int(left.start) + offset])
            != OctetClass.lowercased(bytes[Int(right.start) + offset])
        {
            return false
        }
        return true
    }

    static func starts(_ bytes: Span<UInt8>, with text: StaticString) -> Bool {
        guard bytes.count >= text.utf8CodeUnitCount else { return false }
        for offset in 0..<text.utf8CodeUnitCount where bytes[offset] != text.utf8Start[offset] {
            return false
        }
        return true
    }

    /// Whether `bytes` begin with `text` (lower-case), ignoring case.
    static func starts(_ bytes: Span<UInt8>, withCaseless text: StaticString) -> Bool {
        guard bytes.count >= text.utf8CodeUnitCount else { return false }
        return equals(in: bytes, at: ByteRange(from: 0, to: text.utf8CodeUnitCount), text: text)
    }

    /// Whether a comma-separated list contains `member` (lower-case), ignoring case.
    static func hasMember(_ member: StaticString, in slice: ByteRange, of bytes: Span<UInt8>) -> Bool {
        var rest = slice
        while let next = nextMember(of: &rest, in: bytes) {
            if equals(in: bytes, at: next, text: member) { return true }
        }
        return false
    }

    /// Removes the first member from a comma-separated list and returns it trimmed; nil at the list's end.
    static func nextMember(of rest: inout ByteRange, in bytes: Span<UInt8>) -> ByteRange? {
        while !rest.isEmpty {
            var start = Int(rest.start)
            var stop = start
            let end = Int(rest.end)
            while stop < end, bytes[stop] != UInt8(ascii: ",") { stop += 1 }
            rest = ByteRange(from: min(stop + 1, end), to: end)
            while start < stop, bytes[start] == OctetClass.space || bytes[start] == OctetClass.tab {
                start += 1
            }
            while stop > start, bytes[stop - 1] == OctetClass.space || bytes[stop - 1] == OctetClass.tab {
                stop -= 1
            }
            if stop > start { return ByteRange(from: start, to: stop) }
        }
        return nil
    }
}
