/// A JSON value to be written. Members keep the order they are given in, so that the same data is the same
/// text.
package indirect enum JSONValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral
{
    case null
    case bool(Bool)
    case integer(Int64)
    /// `null` where it is not finite: JSON has no word for it.
    case decimal(Double)
    case string(String)
    /// A text as its UTF-8 bytes. For secrets: a `String` cannot be wiped.
    case utf8([UInt8])
    case array([JSONValue])
    case object([(name: String, value: JSONValue)])

    package init(stringLiteral text: String) { self = .string(text) }
    package init(integerLiteral number: Int64) { self = .integer(number) }
    package init(booleanLiteral flag: Bool) { self = .bool(flag) }
    package init(nilLiteral: ()) { self = .null }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(members.map { (name: $0.0, value: $0.1) })
    }

    package static func strings(_ texts: some Sequence<String>) -> JSONValue {
        .array(texts.map { .string($0) })
    }

    /// Bytes as the routes encode them: base64url without padding.
    package static func bytes(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, as: .url)) }

    package static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    package static func == (left: JSONValue, right: JSONValue) -> Bool { left.text == right.text }
}

extension JSONValue {
    /// On one line, without white space: for logs and answers.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// ``text`` in UTF-8.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        write(into: &bytes, indent: nil)
        return bytes
    }

    /// Over several lines, two spaces a level: for people.
    package var prettyText: String {
        var bytes: [UInt8] = []
        write(into: &bytes, indent: 0)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `indent` is the level in the several-line form; nil writes one line.
    private func write(into bytes: inout [UInt8], indent: Int?) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let flag): bytes.append(contentsOf: (flag ? "true" : "false").utf8)
        case .integer(let number): bytes.append(contentsOf: String(number).utf8)
        case .decimal(let number): bytes.append(contentsOf: (number.isFinite ? String(number) : "null").utf8)
        case .string(let text): JSONValue.append(text, to: &bytes)
        case .utf8(let text): JSONValue.append(utf8: text, to: &bytes)
        case .array(let elements):
            list(elements, open: "[", close: "]", into: &bytes, indent: indent) { element, bytes, indent in
                element.write(into: &bytes, indent: indent)
            }
        case .object(let members):
            list(members, open: "{", close: "}", into: &bytes, indent: indent) { member, bytes, indent in
                JSONValue.append(member.name, to: &bytes)
                bytes.append(contentsOf: (indent == nil ? ":" : ": ").utf8)
                member.value.write(into: &bytes, indent: indent)
            }
        }
    }

    private func list<Element>(
        _ elements: [Element], open: Unicode.Scalar, close: Unicode.Scalar, into bytes: inout [UInt8],
        indent: Int?,
        each: (Element, inout [UInt8], Int?) -> Void
    ) {
        bytes.append(UInt8(ascii: open))
        let inner = elements.isEmpty ? nil : indent.map { $0 + 1 }
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONValue.breakLine(inner, into: &bytes)
            each(element, &bytes, inner)
        }
        if !elements.isEmpty { JSONValue.breakLine(indent, into: &bytes) }
        bytes.append(UInt8(ascii: close))
    }

    private static func breakLine(_ indent: Int?, into bytes: inout [UInt8]) {
        guard let indent else { return }
        bytes.append(0x0A)
        bytes.append(contentsOf: repeatElement(0x20, count: indent * 2))
    }

    /// The text in quotes, escaped. U+2028 and U+2029 are escaped as well: JavaScript once ended a line at
    /// them.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        let isPlain = text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(JSONValue.isPlain) }
        if isPlain == true { return bytes.append(contentsOf: text.utf8) }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": bytes.append(contentsOf: "\\\"".utf8)
            case "\\": bytes.append(contentsOf: "\\\\".utf8)
            case "\n": bytes.append(contentsOf: "\\n".utf8)
            case "\r": bytes.append(contentsOf: "\\r".utf8)
            case "\t": bytes.append(contentsOf: "\\t".utf8)
            case "\0"..<" ", "\u{7F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                bytes.append(contentsOf: "\\u".utf8)
                bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
                bytes.append(contentsOf: digits.utf8)
            default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
    }

    /// The same for bytes that are UTF-8.
    private static func append(utf8 text: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(contentsOf: [byte >> 4, byte & 15].map { Hex.digit($0) })
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Whether a string contains these bytes as they are; eight at a time.
    fileprivate static func arePlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var index = 0
        // Its top bits, exactly if any byte is below 0x20, is a quote or a backslash, or is above 0x7E.
        var others: UInt64 = 0
        while index + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let quote = word ^ (ones &* 0x22)
            let backslash = word ^ (ones &* 0x5C)
            others |= (word &- ones &* 0x20) & ~word | (quote &- ones) & ~quote
            others |= (backslash &- ones) & ~backslash | (word &+ ones) | word
            index += 8
        }
        guard others & (ones &* 0x80) == 0 else { return false }
        return bytes[index...].allSatisfy(isPlain)
    }

    /// Whether a string contains this byte as it is: ASCII that needs no escape.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): false
        default: 0x20...0x7E ~= byte
        }
    }
}

extension ByteBuffer {
    /// Appends the text in quotes, escaped as ``JSONValue/append(_:to:)`` does.
    package mutating func append(json text: String) {
        var plain = text
        let isPlain = plain.withUTF8 { bytes in
            guard JSONValue.arePlain(UnsafeRawBufferPointer(bytes)) else { return false }
            append(UInt8(ascii: "\""))
            append(bytes)
            append(UInt8(ascii: "\""))
            return true
        }
        if isPlain { return }
        var bytes: [UInt8] = []
        JSONValue.append(text, to: &bytes)
        append(bytes.span)
    }
}

extension JSONValue {
    /// What was read, to be written again.
    package init(_ value: JSON, of document: JSONDocument) {
        switch value.content {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .number:
            self =
                document.integer(value, in: Int.min...Int.max).map { .integer(Int64($0)) }
                ?? .string(document.text(of: value))
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map { JSONValue($0, of: document) })
        case .object(let members):
            self = .object(members.map { ($0.name, JSONValue($0.value, of: document)) })
        }
    }
}
