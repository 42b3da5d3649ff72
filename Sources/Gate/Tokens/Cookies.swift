import CountersignWire

/// The cookies of a request, split as common servers do: at `;`, and each at its first `=`. Source: RFC 6265
/// §4.2.1.
struct Cookies {
    /// Offsets in the request's head, without surrounding white space.
    private struct Cookie {
        var text: Range<Int>
        var name: Range<Int>
        var value: Range<Int>
    }

    /// The most cookies of a request; a request with more is refused.
    private static let most = 256

    private let head: [UInt8]
    private var all: [Cookie] = []
    /// The fields that contain the cookies.
    let fields: FieldMask

    init(in request: Request) throws(Refusal) {
        head = request.head
        var fields = FieldMask()
        for index in request.fields.indices where index < FieldMask.limit {
            let field = request.fields[index]
            guard field.known == .other, request.matches(field.name, text: "cookie") else { continue }
            fields.insert(index)
            try Cookies.read(field.value.range, of: request.head.span, into: &all)
        }
        self.fields = fields
    }

    private static func read(
        _ line: Range<Int>, of head: Span<UInt8>, into all: inout [Cookie]
    ) throws(Refusal) {
        let known = head.extracting(0..<line.upperBound)
        var start = line.lowerBound
        while start < line.upperBound {
            let end = known.firstIndex(of: UInt8(ascii: ";"), from: start) ?? line.upperBound
            let text = trimmed(start..<end, of: head)
            start = end + 1
            guard !text.isEmpty else { continue }
            guard all.count < most else { throw Refusal(.malformed, detail: "more than \(most) cookies") }
            var mark = text.lowerBound
            while mark < text.upperBound, head[mark] != UInt8(ascii: "=") { mark += 1 }
            // Text without `=` is a value without a name.
            let name = mark < text.upperBound ? text.lowerBound..<mark : text.lowerBound..<text.lowerBound
            let value = mark < text.upperBound ? (mark + 1)..<text.upperBound : text
            all.append(Cookie(text: text, name: trimmed(name, of: head), value: trimmed(value, of: head)))
        }
    }

    private static func trimmed(_ range: Range<Int>, of head: Span<UInt8>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, head[start] == 0x20 || head[start] == 0x09 { start += 1 }
        while end > start, head[end - 1] == 0x20 || head[end - 1] == 0x09 { end -= 1 }
        return start..<end
    }

    /// The value of the cookie whose name has exactly these bytes; nil if it is missing or empty.
    func value(of name: [UInt8]) throws(Refusal) -> [UInt8]? {
        let found = all.filter { head[$0.name].elementsEqual(name) }
        guard found.count <= 1 else {
            throw Refusal(.malformed, detail: "cookie \(name.span.text) comes more than once")
        }
        return found.first.flatMap { $0.value.isEmpty ? nil : Array(head[$0.value]) }
    }

    /// Whether some backend may read a cookie as `word` although its name has other bytes.
    func areMistakable(for word: [UInt8]) -> Bool {
        all.contains {
            LenientParameterName.match(of: head.span.extracting($0.name), as: word.span) == .ambiguous
        }
    }

    /// All cookies except those of that name, joined as the value of one field.
    func without(_ name: [UInt8]) -> [UInt8] {
        Array(
            all.filter { !head[$0.name].elementsEqual(name) }.map { head[$0.text] }.joined(
                separator: "; ".utf8))
    }
}
