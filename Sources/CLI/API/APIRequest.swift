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

    /// `values` are those of the path, and `query` is nil without a `?`.
    func commandLine(
        path values: [String: String], query: String?, body: [UInt8]
    ) throws(APIProblem) -> APICommandLine {
        var line = APICommandLine()
        line.add(fixed: fixedWords.filter { $0.hasPrefix("--") })
        for input in inputs where isInPath(input) {
            let text = values[input.name] ?? ""
            try APIOperation.check(text, of: input)
            line.add(text: text, as: input.use)
        }
        try addQuery(query, to: &line)
        try addBody(body, to: &line)
        // A fixed word that is no option stands in the place of the last positional.
        if let word = fixedWords.first(where: { !$0.hasPrefix("--") }), let last = command.positionals.last {
            line.add(text: word, as: .positional(last.name))
        }
        return line
    }

    private func addQuery(_ query: String?, to line: inout APICommandLine) throws(APIProblem) {
        var given: Set<String> = []
        for pair in (query ?? "").split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decodedText(sides[0]),
                let text = sides.count == 2 ? PercentEncoding.decodedText(sides[1]) : "",
                let input = otherInputs.first(where: { $0.name == name }), !method.hasBody
            else {
                throw APIProblem(400, code: "invalid", detail: "query: `\(pair)` is not known")
            }
            guard given.insert(name).inserted else {
                throw APIProblem(400, code: "invalid", detail: "query: `\(name)` is given twice")
            }
            try APIOperation.check(text, of: input)
            line.add(text: text, as: input.use)
        }
        guard !method.hasBody else { return }
        for input in otherInputs where input.isRequired && !given.contains(input.name) {
            throw APIProblem(400, code: "invalid", detail: "query: `\(input.name)` is missing")
        }
    }

    private func addBody(_ body: [UInt8], to line: inout APICommandLine) throws(APIProblem) {
        guard let schema = bodySchema else {
            guard body.isEmpty else {
                throw APIProblem(400, code: "invalid", detail: "body: \(id) takes none")
            }
            return
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
        for input in otherInputs {
            guard let value = document.root[input.name] else { continue }
            line.add(value, of: document, as: input.use)
        }
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
