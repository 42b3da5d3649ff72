import CountersignHTTP
import CountersignServer
import CountersignWire

/// Why a call of the API has no result, as its answer says it. Source: RFC 9457.
final class APIProblem: Error, Sendable {
    let status: Int
    /// Stable, for programs.
    let code: String
    let detail: String
    /// Fields of the response.
    let fields: [ServerResponse.Field]

    init(_ status: Int, code: String, detail: String, fields: [ServerResponse.Field] = []) {
        self.status = status
        self.code = code
        self.detail = detail
        self.fields = fields
    }

    /// Of a command that has failed.
    convenience init(_ error: OperationalError) {
        switch error.kind {
        case .usage: self.init(400, code: "invalid", detail: error.message)
        case .missing: self.init(404, code: "not-found", detail: error.message)
        case .failed: self.init(409, code: "conflict", detail: error.message)
        case .forbidden: self.init(403, code: "scope-missing", detail: error.message)
        case .unreachable: self.init(503, code: "unavailable", detail: error.message)
        }
    }

    /// Every status that an operation may answer, with its meaning.
    static let statuses: [(status: Int, meaning: String)] = [
        (400, "The request is not what the operation takes"), (401, "No valid token was presented"),
        (403, "The token does not have the scope"), (404, "The thing that is named does not exist"),
        (405, "The path has other methods"),
        (409, "The state of the deployment does not allow it"), (412, "If-Match: it has changed"),
        (413, "The body is too large"), (415, "The body is not application/json"),
        (421, "The Host field names another server"),
        (422, "The idempotency key was used for another request"), (503, "Not now"),
    ]

    var response: ServerResponse {
        let title = APIProblem.statuses.first { $0.status == status }?.meaning ?? "Refused"
        let body: JSONValue = [
            "type": "about:blank", "title": .string(title), "status": .integer(Int64(status)),
            "code": .string(code), "detail": .string(detail),
        ]
        return ServerResponse(
            status: status, type: "application/problem+json",
            fields: [ServerResponse.Field("Cache-Control", value: "no-store")] + fields, body: body.bytes)
    }
}

/// The values that a request gives an operation, checked.
extension APIOperation {
    static let mostBodyBytes = 64 << 10

    /// Checks the values of a call. `path` has those of the path, and `query` is nil without a `?`.
    func values(
        path: [String: String], query: String?, body: [UInt8]
    ) throws(APIProblem) -> APIValues {
        var texts: [String: String] = [:]
        for input in inputs where isInPath(input) {
            let text = path[input.name] ?? ""
            try APIOperation.check(text, of: input)
            texts[input.name] = text
        }
        texts.merge(try queryTexts(query)) { inPath, _ in inPath }
        return APIValues(texts: texts, body: try document(body))
    }

    private func queryTexts(_ query: String?) throws(APIProblem) -> [String: String] {
        var texts: [String: String] = [:]
        for pair in (query ?? "").split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decodedText(sides[0]),
                let text = sides.count == 2 ? PercentEncoding.decodedText(sides[1]) : "",
                let input = otherInputs.first(where: { $0.name == name }), !method.hasBody
            else {
                throw APIProblem(400, code: "invalid", detail: "query: `\(pair)` is not known")
            }
            guard texts[name] == nil else {
                throw APIProblem(400, code: "invalid", detail: "query: `\(name)` is given twice")
            }
            try APIOperation.check(text, of: input)
            texts[name] = text
        }
        guard !method.hasBody else { return texts }
        for input in otherInputs where input.isRequired && texts[input.name] == nil {
            throw APIProblem(400, code: "invalid", detail: "query: `\(input.name)` is missing")
        }
        return texts
    }

    /// Nil for an operation that takes no body.
    private func document(_ body: [UInt8]) throws(APIProblem) -> JSONDocument? {
        guard let schema = bodySchema else {
            guard body.isEmpty else {
                throw APIProblem(400, code: "invalid", detail: "body: \(id) takes none")
            }
            return nil
        }
        let document: JSONDocument
        do {
            document = try JSONReader.read(body.isEmpty ? Array("{}".utf8) : body)
        } catch {
            throw APIProblem(400, code: "invalid", detail: "body: not JSON: \(error)")
        }
        if let flaw = schema.flaw(in: document.root, of: document, at: "body") {
            throw APIProblem(400, code: "invalid", detail: flaw)
        }
        return document
    }

    /// Checks text of a path or a query.
    private static func check(_ text: String, of input: APIInput) throws(APIProblem) {
        let isValid: Bool =
            switch input.schema {
            case .integer(let range):
                text.utf8.allSatisfy(ASCII.isDigit) && text.utf8.count <= 18
                    && Int64(text).map(range.contains) == true
            case .boolean: text == "true" || text == "false"
            case .time: text.utf8.allSatisfy(ASCII.isDigit) && (1...15).contains(text.utf8.count)
            case .choice(let words): words.contains(text)
            default:
                (1...256).contains(text.unicodeScalars.count)
                    && !text.unicodeScalars.contains { $0.value < 0x20 }
            }
        guard isValid else {
            let expected = input.schema.json.text
            throw APIProblem(400, code: "invalid", detail: "\(input.name) `\(text)`: expected \(expected)")
        }
    }
}

extension APIProblem {
    /// For how long a caller of the API or the console waits for a command.
    static let mostCommandMilliseconds = 60_000

    static let late = APIProblem(
        503, code: "unavailable",
        detail: """
            the command, or an earlier one, has not ended within \(mostCommandMilliseconds / 1_000) seconds; \
            it is not known whether the command will take effect
            """)
}
