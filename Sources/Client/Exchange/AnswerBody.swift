import CountersignWire

/// The members of an answer's JSON, each demanded in its kind.
struct AnswerBody {
    private let document: JSONDocument
    private let root: JSON
    /// Names the answer in complaints.
    private let route: String

    init(_ response: Response, of route: String) throws(ClientProblem) {
        let bytes = response.message.body
        do {
            document = try JSONReader.read(bytes.isEmpty ? Array("{}".utf8) : bytes)
        } catch {
            throw .notUnderstood("\(route): the answer is not JSON: \(error)")
        }
        root = document.root
        self.route = route
    }

    private init(_ document: JSONDocument, _ root: JSON, _ route: String) {
        self.document = document
        self.root = root
        self.route = route
    }

    func text(_ name: String) throws(ClientProblem) -> String {
        guard let text = root[name]?.string else { throw missing(name, "a string") }
        return text
    }

    func optionalText(_ name: String) -> String? { root[name]?.string }

    /// Whether the member is there and true.
    func says(_ name: String) -> Bool {
        if case .bool(true)? = root[name]?.content { true } else { false }
    }

    /// Base64url; exactly `count` bytes where that is given.
    func bytes(_ name: String, count: Int? = nil) throws(ClientProblem) -> [UInt8] {
        guard let text = root[name]?.string, let bytes = Base64.decode(text, .url),
            count.map({ $0 == bytes.count }) ?? true
        else { throw missing(name, count.map { "\($0) bytes in base64url" } ?? "bytes in base64url") }
        return bytes
    }

    /// Whole seconds, or another number that is not negative.
    func number(_ name: String) throws(ClientProblem) -> Int64 {
        guard let value = root[name], let number = document.integer(value, in: 0...(1 << 53)) else {
            throw missing(name, "a whole number")
        }
        return Int64(number)
    }

    func token() throws(ClientProblem) -> SessionToken {
        let text = Array(try text("token").utf8)
        guard let token = SessionToken(text.span) else { throw missing("token", "a token") }
        return token
    }

    func object(_ name: String) throws(ClientProblem) -> AnswerBody {
        guard let value = root[name], value.members != nil else { throw missing(name, "an object") }
        return AnswerBody(document, value, "\(route): \(name)")
    }

    func objects(_ name: String) throws(ClientProblem) -> [AnswerBody] {
        guard let elements = root[name]?.elements else { throw missing(name, "a list") }
        return elements.map { AnswerBody(document, $0, "\(route): \(name)") }
    }

    func missing(_ name: String, _ expected: String) -> ClientProblem {
        .notUnderstood("\(route): \(name): expected \(expected)")
    }
}
