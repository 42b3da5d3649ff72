/// Writes one flat JSON object, for lines that are written for every request: appends to existing bytes and
/// allocates nothing of its own.
package struct JSONLine {
    package private(set) var bytes: [UInt8]
    private var isFirst = true

    /// Reuses `buffer`'s memory.
    package init(reusing buffer: consuming [UInt8] = []) {
        bytes = buffer
        bytes.append(UInt8(ascii: "{"))
    }

    package mutating func add(_ name: StaticString, value text: String) {
        begin(name)
        appendString(text)
    }

    package mutating func add(_ name: StaticString, value text: Span<UInt8>) {
        begin(name)
        text.withUnsafeBytes { appendString($0) }
    }

    package mutating func add(_ name: StaticString, value number: Int) {
        begin(name)
        bytes.append(contentsOf: String(number).utf8)
    }

    /// An array of plain words.
    package mutating func add(_ name: StaticString, values words: [StaticString]) {
        begin(name)
        bytes.append(UInt8(ascii: "["))
        for (index, word) in words.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            word.withUTF8Buffer { appendString(UnsafeRawBufferPointer($0)) }
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Closes the object.
    package mutating func end() { bytes.append(UInt8(ascii: "}")) }

    private mutating func begin(_ name: StaticString) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func appendString(_ text: String) {
        var text = text
        text.withUTF8 { appendString(UnsafeRawBufferPointer($0)) }
    }

    /// Quotes what JSON must have quoted, and all that is not ASCII, so that bytes of any kind make a valid
    /// line.
    private mutating func appendString(_ text: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        if text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        ) {
            bytes.append(contentsOf: text)
        } else {
            for unit in String(decoding: text, as: UTF8.self).utf16 { append(unit) }
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
