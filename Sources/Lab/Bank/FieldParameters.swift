import CountersignWire

/// A request's parameters as backends in the field read them: from the query, then from a form or JSON body, forgiving what is ill-formed.
/// Of several with one name the last counts, so that the body's wins over the query's. Source: PHP's `$_REQUEST`.
package struct FieldParameters: Sendable {
    package typealias Pair = (name: String, value: String)

    package private(set) var pairs: [Pair] = []

    package init(_ pairs: [Pair] = []) { self.pairs = pairs }

    package init(_ request: RawRequest) {
        pairs = FieldParameters.query(of: request).pairs + FieldParameters.body(of: request).pairs
    }

    package subscript(name: String) -> String? { pairs.last { $0.name == name }?.value }

    /// Each name once, with its last value: what a PHP array has.
    package var collapsed: [String: String] { Dictionary(pairs.map { ($0.name, $0.value) }) { _, last in last } }

    /// As C's `atoi` and PHP's `intval` read it: the digits at the beginning, whatever follows. Zero where there are none.
    package func number(_ name: String) -> Int { FieldParameters.leadingNumber(self[name] ?? "") }

    /// As `intval` reads, of 15 digits at most: whoever reckons with it must not overflow.
    package static func leadingNumber(_ text: String) -> Int {
        let isNegative = text.hasPrefix("-")
        let digits = text.drop { $0 == "-" }.prefix { $0.isASCII && $0.isNumber }.prefix(15)
        return (Int(digits) ?? 0) * (isNegative ? -1 : 1)
    }

    package static func query(of request: RawRequest) -> FieldParameters {
        FieldParameters(form(Array((request.query ?? "").utf8)))
    }

    /// Of a form or a JSON object; none of anything else.
    package static func body(of request: RawRequest) -> FieldParameters {
        let type = request.fields["content-type"]?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") { return FieldParameters(form(request.body)) }
        return type.contains("json") ? FieldParameters(json(request.body)) : FieldParameters()
    }

    /// Pairs of a form as they stand. Bad escapes and NUL are data.
    package static func form(_ text: [UInt8]) -> [Pair] {
        formBytes(text).map {
            (name: String(decoding: $0.name, as: UTF8.self), value: String(decoding: $0.value, as: UTF8.self))
        }
    }

    /// The same, for who hashes them: bytes that are no text stay what they are.
    package static func formBytes(_ text: [UInt8]) -> [(name: [UInt8], value: [UInt8])] {
        text.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (name: decoded(parts[0]), value: parts.count > 1 ? decoded(parts[1]) : [])
        }
    }

    private static func decoded(_ part: ArraySlice<UInt8>) -> [UInt8] {
        let bytes = Array(part)
        return Form.forgivinglyDecoded(bytes.span)
    }

    /// The members of a JSON object, strings without their quotes and all else as it is written; names may repeat.
    package static func json(_ text: [UInt8]) -> [Pair] {
        var pairs: [Pair] = []
        var members = JSONMembers()
        do throws(MalformedJSON) {
            while let member = try members.next(in: text.span) {
                let name = try string(member.name, text)
                let value =
                    member.kind == .string
                    ? try string(member.value, text) : String(decoding: text[member.value.range], as: UTF8.self)
                pairs.append((name: name, value: value))
            }
        } catch {
            // A parser of the field gives null for what it cannot read, and null has no members.
            return []
        }
        return pairs
    }

    private static func string(_ raw: Slice, _ text: [UInt8]) throws(MalformedJSON) -> String {
        var bytes: [UInt8] = []
        try JSONMembers.forEachByte(of: raw, in: text.span) { bytes.append($0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
