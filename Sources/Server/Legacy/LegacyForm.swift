import CountersignWire

/// The parameters of an old client's login: of the query of a GET, else of the form.
///
/// Read as the PHP behind these paths read them, because clients in the field do not escape: `+` is a space, and a `%` that no
/// two digits follow is itself. A NUL, at which other programs stop reading, and a name that comes twice are refused.
struct LegacyForm {
    private let text: [UInt8]
    private let pairs: [Form.Pair]

    init(of request: Request) throws(Refusal) {
        let text = try LegacyForm.text(of: request)
        self.text = text
        pairs = try LegacyForm.pairs(of: text)
    }

    private static func text(of request: Request) throws(Refusal) -> [UInt8] {
        if request.matches(request.method, "GET") { return request.query.map { Array(request.head[$0.range]) } ?? [] }
        guard request.hasFormType || request.body.isEmpty else {
            throw Refusal(.malformed, "Content-Type: expected application/x-www-form-urlencoded")
        }
        return request.body
    }

    private static func pairs(of text: [UInt8]) throws(Refusal) -> [Form.Pair] {
        var pairs: [Form.Pair] = []
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text.span) {
                guard pairs.count < most else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "at most \(most) parameters")
                }
                pairs.append(pair)
            }
            return pairs
        } catch {
            throw Refusal(.malformed, "form parameters: expected \(error.expected) at byte \(error.at)")
        }
    }

    private static let most = 64

    /// The one value of that name.
    func value(_ name: StaticString) throws(Refusal) -> [UInt8] {
        let found = pairs.filter { Form.isNamed(name, $0, of: text.span) }
        guard found.count == 1 else {
            throw Refusal(.malformed, "parameter \(name): \(found.isEmpty ? "is missing" : "comes more than once")")
        }
        let value = Form.forgivinglyDecoded(text.span.extracting(found[0].value.range))
        guard !value.contains(0) else { throw Refusal(.malformed, "parameter \(name): expected no NUL") }
        return value
    }
}
