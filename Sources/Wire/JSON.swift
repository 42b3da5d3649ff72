/// One JSON value as it was read, with the place of its bytes in the document. Source: RFC 8259.
///
/// Strings are compared and searched by their UTF-8 bytes: Swift's `==` calls composed and decomposed letters
/// equal, and two members that another reader tells apart must stay two.
package struct JSON: Sendable {
    package enum Content: Sendable {
        case null
        case bool(Bool)
        /// The digits stay in the document: read them with `integer(in:)`, or as raw text.
        case number
        case string(String)
        case array([JSON])
        case object([Member])
    }

    package struct Member: Sendable {
        package var name: String
        package var value: JSON
    }

    package var content: Content
    /// Where the value's own bytes stand in the document: quotes and brackets included, white space around it
    /// not.
    package var raw: ByteRange

    /// The member of that name, where this is an object that has one.
    package subscript(name: String) -> JSON? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    package var members: [Member]? {
        if case .object(let members) = content { members } else { nil }
    }

    package var elements: [JSON]? {
        if case .array(let elements) = content { elements } else { nil }
    }

    package var string: String? {
        if case .string(let text) = content { text } else { nil }
    }

    /// What a person would call this kind of value.
    package var kind: String {
        switch content {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "a list"
        case .object: "an object"
        }
    }
}

/// A whole JSON text and the value it holds; the bytes are kept, because some schemes sign them as they
/// stand.
package struct JSONDocument: Sendable {
    package var bytes: [UInt8]
    package var root: JSON

    /// The value's bytes exactly as they were received.
    package func bytes(of value: JSON) -> ArraySlice<UInt8> { bytes[value.raw.range] }

    package func text(of value: JSON) -> String { String(decoding: bytes(of: value), as: UTF8.self) }

    /// The value as a whole number, where it is written as one (no fraction, no exponent) and lies in
    /// `range`.
    package func integer(_ value: JSON, in range: ClosedRange<Int>) -> Int? {
        guard case .number = value.content, let number = Int(text(of: value)), range.contains(number) else {
            return nil
        }
        return number
    }
}
