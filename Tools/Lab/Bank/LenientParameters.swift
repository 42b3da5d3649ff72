import CountersignWire

/// A request's parameters as common backends read them: from the query, then from a form or JSON body.
/// Ill-formed input is accepted. Of several values with one name the last counts, so that the body overrides
/// the query. Source: PHP's `$_REQUEST`.
package struct LenientParameters: Sendable {
    package typealias Pair = (name: String, value: String)

    package private(set) var pairs: [Pair] = []

    package init(_ pairs: [Pair] = []) { self.pairs = pairs }

    package init(_ request: RawRequest) {
        pairs = LenientParameters.query(of: request).pairs + LenientParameters.body(of: request).pairs
    }

    package subscript(name: String) -> String? { pairs.last { $0.name == name }?.value }

    /// Each name with its last value, as in a PHP array.
    package var lastValues: [String: String] {
        Dictionary(pairs.map { ($0.name, $0.value) }) { _, last in last }
    }

    /// Reads a number as C's `atoi` and PHP's `intval` do: the leading digits, whatever follows. Zero where
    /// there are none.
    package func number(_ name: String) -> Int { LenientParameters.leadingNumber(self[name] ?? "") }

    /// Reads at most 15 leading digits, so that sums of the values cannot overflow.
    package static func leadingNumber(_ text: String) -> Int {
        let isNegative = text.hasPrefix("-")
        let digits = text.drop { $0 == "-" }.prefix { $0.isASCII && $0.isNumber }.prefix(15)
        return (Int(digits) ?? 0) * (isNegative ? -1 : 1)
    }

    package static func query(of request: RawRequest) -> LenientParameters {
        LenientParameters(form(Array((request.query ?? "").utf8)))
    }

    /// The parameters of a form or a JSON object; none of other bodies.
    package static func body(of request: RawRequest) -> LenientParameters {
        let type = request.fields["content-type"]?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") {
            return LenientParameters(form(request.body))
        }
        return type.contains("json") ? LenientParameters(json(request.body)) : LenientParameters()
    }

    /// The pairs of a form, undecodable escapes and NUL included as data.
    package static func form(_ text: [UInt8]) -> [Pair] {
        formBytes(text).map {
            (name: String(decoding: $0.name, as: UTF8.self), value: String(decoding: $0.value, as: UTF8.self))
        }
    }

    /// The same as bytes, for schemes that hash them: bytes that are no UTF-8 stay unchanged.
    package static func formBytes(_ text: [UInt8]) -> [(name: [UInt8], value: [UInt8])] {
        text.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (name: decoded(parts[0]), value: parts.count > 1 ? decoded(parts[1]) : [])
        }
    }

    private static func decoded(_ part: ArraySlice<UInt8>) -> [UInt8] {
        let bytes = Array(part)
        return Form.lenientlyDecoded(bytes.span)
    }

    /// The members of a JSON object: strings without their quotes, other values as written. Names may repeat.
    package static func json(_ text: [UInt8]) -> [Pair] {
        var pairs: [Pair] = []
        var members = JSONMembers()
        do {
            while let member = try members.next(in: text.span) {
                let name = try string(member.name, in: text)
                let value =
                    member.kind == .string
                    ? try string(member.value, in: text)
                    : String(decoding: text[member.value.range], as: UTF8.self)
                pairs.append((name: name, value: value))
            }
        } catch {
            // Common parsers return null for input that they cannot read, and null has no members.
            return []
        }
        return pairs
    }

    private static func string(_ raw: ByteRange, in text: [UInt8]) throws(ParseError) -> String {
        var bytes: [UInt8] = []
        try JSONMembers.forEachByte(of: raw, in: text.span) { bytes.append($0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
