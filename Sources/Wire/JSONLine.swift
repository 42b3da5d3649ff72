/// Writes one flat JSON object, for lines that are written for every request: appends to existing bytes and
/// allocates nothing of its own.
///
/// A line of a log is bounded, whatever a caller sends: a text is cut after ``longestText``, and the line is
/// at most ``longest`` bytes long. A member for which the line has no room is left out.
package struct JSONLine {
    package enum Purpose {
        case log
        /// Whatever reads the object needs all of it.
        case wholeObject
    }

    /// The most bytes of a line.
    package static let longest = 4_096
    /// The most bytes of one text in its escaped form.
    package static let longestText = 1_024

    package private(set) var bytes: [UInt8]
    private var isFirst = true
    private let mostText: Int
    private let mostBytes: Int

    /// Reuses `buffer`'s memory.
    package init(reusing buffer: consuming [UInt8] = [], for purpose: Purpose = .log) {
        switch purpose {
        case .log: (mostText, mostBytes) = (JSONLine.longestText, buffer.count + JSONLine.longest - 1)
        case .wholeObject: (mostText, mostBytes) = (.max - 8, .max - 8)
        }
        bytes = buffer
        bytes.append(UInt8(ascii: "{"))
    }

    package mutating func add(_ name: StaticString, value text: String) {
        guard begin(name) else { return }
        appendString(text)
    }

    package mutating func add(_ name: StaticString, value text: Span<UInt8>) {
        guard begin(name) else { return }
        text.withUnsafeBytes { appendString($0) }
    }

    package mutating func add(_ name: StaticString, value number: Int) {
        guard begin(name) else { return }
        bytes.append(contentsOf: String(number).utf8)
    }

    /// An array of plain words.
    package mutating func add(_ name: StaticString, values words: [StaticString]) {
        guard begin(name) else { return }
        bytes.append(UInt8(ascii: "["))
        for (index, word) in words.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            word.withUTF8Buffer { appendString(UnsafeRawBufferPointer($0)) }
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Closes the object.
    package mutating func end() { bytes.append(UInt8(ascii: "}")) }

    /// The most bytes of a number, and of a text that is cut at once.
    private static let shortest = 24

    /// False if the line has no room for the member.
    private mutating func begin(_ name: StaticString) -> Bool {
        guard bytes.count + name.utf8CodeUnitCount + 4 + JSONLine.shortest <= mostBytes else { return false }
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        return true
    }

    private mutating func appendString(_ text: String) {
        var text = text
        text.withUTF8 { appendString(UnsafeRawBufferPointer($0)) }
    }

    /// Quotes what JSON must have quoted, and all that is not ASCII, so that bytes of any kind make a valid
    /// line.
    private mutating func appendString(_ text: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        let room = min(mostText, mostBytes - bytes.count - 1)
        if text.count <= room,
            text.allSatisfy({
                $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            })
        {
            bytes.append(contentsOf: text)
        } else {
            // A byte takes at least one byte, so that no more than these are looked at.
            let first = UnsafeRawBufferPointer(rebasing: text.prefix(room + 4))
            for unit in String(decoding: first, as: UTF8.self).cut(toEscaped: room).utf16 { append(unit) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func append(_ unit: UInt16) {
        switch unit {
        case 0x22, 0x5C: bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(unit)])
        case 0x20..<0x7F: bytes.append(UInt8(unit))
        default:
            let digits = String(unit, radix: 16)
            bytes.append(contentsOf: "\\u".utf8)
            bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
            bytes.append(contentsOf: digits.utf8)
        }
    }
}

extension String {
    /// The text if it takes at most `most` bytes in a ``JSONLine``, which escapes all but printable ASCII;
    /// otherwise its longest beginning of whole characters (Unicode scalars) that does with an ellipsis after
    /// it.
    package func cut(toEscaped most: Int) -> String {
        // Most texts need no escapes; those are compared eight bytes at a time.
        let isPlain = utf8.withContiguousStorageIfAvailable { bytes in
            bytes.count <= most && bytes.span.endOfPlainText(from: 0) == bytes.count
        }
        if isPlain == true { return self }
        let ellipsis: Unicode.Scalar = "…"
        var (bytes, end) = (0, unicodeScalars.startIndex)
        for index in unicodeScalars.indices {
            bytes += String.escapedCount(of: unicodeScalars[index])
            if bytes > most { return self[..<end] + String(ellipsis) }
            if bytes + String.escapedCount(of: ellipsis) <= most { end = unicodeScalars.index(after: index) }
        }
        return self
    }

    private static func escapedCount(of scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x22, 0x5C: 2
        case 0x20..<0x7F: 1
        case ..<0x1_0000: 6
        default: 12
        }
    }
}
