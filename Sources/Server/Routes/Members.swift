import CountersignSeal
import CountersignWire

/// The members of a JSON object, as a route asks for them. One that is missing, or of another kind, is `malformed`, and the
/// refusal names it; one that is not asked for is passed over. Source: docs/protocol.md, "The authority's routes".
struct Members: Sendable {
    /// Bytes of a body; more than any of our own routes has use for.
    static let mostBytes = 64 << 10
    /// Levels of containers in it.
    static let deepest = 8

    private let document: JSONDocument
    private let object: JSON
    /// Where the object stands, for messages: empty for the whole body, `device.` for a member of it.
    private let place: String

    /// The body of a request.
    init(of body: [UInt8]) throws(Refusal) {
        var bounds = JSONReader.Bounds()
        bounds.bytes = Members.mostBytes
        bounds.depth = Members.deepest
        do throws(MalformedJSON) {
            document = try JSONReader.read(body, bounds: bounds)
        } catch {
            throw Refusal(.malformed, "the body is not JSON: \(error)")
        }
        guard document.root.members != nil else {
            throw Refusal(.malformed, "the body is \(document.root.kind); expected an object")
        }
        object = document.root
        place = ""
    }

    private init(_ document: JSONDocument, _ object: JSON, at place: String) {
        self.document = document
        self.object = object
        self.place = place
    }

    // MARK: What must be there

    func text(_ name: String) throws(Refusal) -> String {
        let value = try required(name, "a string")
        guard let text = value.string else { throw wrong(name, value.kind, "a string") }
        return text
    }

    /// base64url of exactly `count` bytes.
    func bytes(_ name: String, _ count: Int) throws(Refusal) -> [UInt8] {
        let expected = "base64url of \(count) bytes"
        guard let bytes = Base64.decode(try text(name), .url), bytes.count == count else {
            throw wrong(name, "something else", expected)
        }
        return bytes
    }

    /// base64url of 1 to `most` bytes.
    func bytes(_ name: String, upTo most: Int) throws(Refusal) -> [UInt8] {
        let expected = "base64url of 1 to \(most) bytes"
        guard let bytes = Base64.decode(try text(name), .url), (1...most).contains(bytes.count) else {
            throw wrong(name, "something else", expected)
        }
        return bytes
    }

    /// A whole number, written without fraction and exponent.
    func integer(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws(Refusal) -> Int64 {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        let value = try required(name, expected)
        guard let number = document.integer(value, in: range) else { throw wrong(name, value.kind, expected) }
        return Int64(number)
    }

    func members(_ name: String) throws(Refusal) -> Members {
        let value = try required(name, "an object")
        guard value.members != nil else { throw wrong(name, value.kind, "an object") }
        return Members(document, value, at: "\(place)\(name).")
    }

    /// What must not be seen, as its UTF-8 bytes. The body that it came in is not wiped.
    func secret(_ name: String, upTo most: Int) throws(Refusal) -> Secret {
        let text = try text(name)
        guard text.utf8.count <= most else { throw wrong(name, "longer", "at most \(most) bytes") }
        return Secret(copying: Array(text.utf8).span)
    }

    // MARK: What may be there

    /// Whether there is such a member; `null` counts as none.
    func has(_ name: String) -> Bool {
        guard let value = object[name] else { return false }
        if case .null = value.content { return false }
        return true
    }

    func text(ifAny name: String) throws(Refusal) -> String? { has(name) ? try text(name) : nil }
    func flag(ifAny name: String) throws(Refusal) -> Bool? {
        guard has(name), let value = object[name] else { return nil }
        guard case .bool(let flag) = value.content else { throw wrong(name, value.kind, "true or false") }
        return flag
    }
    func members(ifAny name: String) throws(Refusal) -> Members? { has(name) ? try members(name) : nil }

    /// A refusal of a member's value: `expected` says what it should have been.
    func malformed(_ name: String, expected: String) -> Refusal { wrong(name, "something else", expected) }

    private func required(_ name: String, _ expected: String) throws(Refusal) -> JSON {
        guard let value = object[name] else {
            throw Refusal(.malformed, "member `\(place)\(name)` is missing; expected \(expected)")
        }
        return value
    }

    /// Says what was expected, and never what was there: that may have been meant for another member.
    private func wrong(_ name: String, _ found: String, _ expected: String) -> Refusal {
        Refusal(.malformed, "member `\(place)\(name)` is \(found); expected \(expected)")
    }
}
