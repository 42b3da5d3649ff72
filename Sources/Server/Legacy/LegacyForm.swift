import CountersignSchemes
import CountersignWire

/// The parameters of a legacy client's call: from the query of a GET; from the form or the members of a flat
/// JSON object in a POST.
///
/// Forms are read as PHP reads them, because clients in the field do not escape: `+` is a space, and a `%`
/// without two hexadecimal digits stands for itself. A NUL, at which other programs stop reading, and a name
/// that comes twice are refused.
struct LegacyForm {
    private struct Parameter {
        let name: [UInt8]
        /// Nil for a JSON value that is neither a string nor a number.
        let value: [UInt8]?
    }

    /// Where the parameters are.
    enum Place {
        /// In the query of a GET, in the body of a POST.
        case byMethod
        /// As ``byMethod``, and in the query of a POST that has no body.
        case queryWithoutBody
    }

    private let parameters: [Parameter]

    init(of request: Request, in place: Place = .byMethod) throws(Refusal) {
        let isInQuery = place == .queryWithoutBody && request.body.isEmpty
        if isInQuery || request.matches(request.method, text: "GET") {
            let query = request.query.map { Array(request.head[$0.range]) } ?? []
            parameters = try LegacyForm.read(form: query)
        } else if request.hasFormType || request.body.isEmpty {
            parameters = try LegacyForm.read(form: request.body)
        } else if request.hasJSONType {
            parameters = try LegacyForm.read(json: request.body)
        } else {
            throw Refusal(
                .malformed,
                detail: "Content-Type: expected application/x-www-form-urlencoded or application/json")
        }
    }

    private static func read(form text: [UInt8]) throws(Refusal) -> [Parameter] {
        var parameters: [Parameter] = []
        var reader = Form.Reader()
        do throws(ParseError) {
            while let pair = try reader.next(in: text.span) {
                guard parameters.count < most else {
                    throw ParseError(
                        offset: Int(pair.name.start), reason: "expected at most \(most) parameters")
                }
                parameters.append(
                    Parameter(
                        name: Form.lenientlyDecoded(text.span.extracting(pair.name.range)),
                        value: Form.lenientlyDecoded(text.span.extracting(pair.value.range))))
            }
            return parameters
        } catch {
            throw Refusal(
                .malformed, detail: "form parameters: \(error)")
        }
    }

    /// Strings unescaped, numbers as they are written.
    private static func read(json text: [UInt8]) throws(Refusal) -> [Parameter] {
        var bounds = JSONReader.Bounds()
        (bounds.bytes, bounds.depth) = (mostJSONBytes, 1)
        let document: JSONDocument
        do {
            document = try JSONReader.read(text, bounds: bounds)
        } catch {
            // Reveal nothing of the text itself: it may contain a password.
            throw Refusal(.malformed, detail: "the body is no flat JSON object, at byte \(error.offset)")
        }
        guard let members = document.root.members, members.count <= most else {
            throw Refusal(.malformed, detail: "the body: expected a JSON object of at most \(most) members")
        }
        return members.map { member in
            let value: [UInt8]? =
                switch member.value.content {
                case .string(let text): Array(text.utf8)
                case .number: Array(document.bytes(of: member.value))
                case .null, .bool, .array, .object: nil
                }
            return Parameter(name: Array(member.name.utf8), value: value)
        }
    }

    private static let most = 64
    /// All members of a JSON object are read before the first is used, and unauthenticated callers send it.
    private static let mostJSONBytes = 8 << 10

    /// The one value of that name.
    func value(_ name: String) throws(Refusal) -> [UInt8] {
        guard let value = try value(ifAny: name) else {
            throw Refusal(.malformed, detail: "parameter \(name): is missing")
        }
        return value
    }

    /// The one value of that name; nil if the form lacks it.
    func value(ifAny name: String) throws(Refusal) -> [UInt8]? {
        let found = parameters.filter { $0.name.elementsEqual(name.utf8) }
        guard found.count <= 1 else {
            throw Refusal(.malformed, detail: "parameter \(name): comes more than once")
        }
        guard let parameter = found.first else { return nil }
        guard let value = parameter.value else {
            throw Refusal(.malformed, detail: "parameter \(name): expected a string or a number")
        }
        guard !value.contains(0) else {
            throw Refusal(.malformed, detail: "parameter \(name): expected no NUL")
        }
        return value
    }

    /// The value as a password field of the kind that a rung's clients send.
    func password(_ name: String) throws(Refusal) -> PasswordField {
        let bytes = try value(name)
        return PasswordField(bytes.span)
    }

    /// The value as a token: an empty one counts as absent, because clients send it before a sign-in.
    func token(ifAny name: String) throws(Refusal) -> [UInt8]? {
        guard let token = try value(ifAny: name), !token.isEmpty else { return nil }
        return token
    }
}

extension Request {
    /// Whether its one Content-Type is JSON's.
    fileprivate var hasJSONType: Bool {
        guard let slice = value(of: .contentType) else { return false }
        let type = head.span.extracting(slice.range)
        let json: StaticString = "application/json"
        let length = json.utf8CodeUnitCount
        guard type.count >= length, type.extracting(0..<length).matchesWithoutCase(json) else { return false }
        return type.count == length || type[length] == UInt8(ascii: ";") || type[length] == UInt8(ascii: " ")
    }
}
