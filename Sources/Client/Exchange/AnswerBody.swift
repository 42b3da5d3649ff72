import CountersignWire

/// The members of an answer's JSON, each demanded in its kind.
struct AnswerBody {
    private let document: JSONDocument
    private let route: String

    /// `route` names the answer in complaints.
    init(_ response: Response, of route: String) throws(ClientProblem) {
        do {
            document = try JSONReader.read(response.message.body)
        } catch {
            throw .notUnderstood("\(route): the answer is not JSON: \(error)")
        }
        self.route = route
    }

    var root: JSON { document.root }

    func text(_ name: String) throws(ClientProblem) -> String {
        guard let text = document.root[name]?.string else { throw missing(name, "a string") }
        return text
    }

    func optionalText(_ name: String) -> String? { document.root[name]?.string }

    /// Base64url; exactly `count` bytes where that is given.
    func bytes(_ name: String, count: Int? = nil) throws(ClientProblem) -> [UInt8] {
        guard let text = document.root[name]?.string, let bytes = Base64.decode(text, .url),
            count.map({ $0 == bytes.count }) ?? true
        else { throw missing(name, count.map { "\($0) bytes in base64url" } ?? "bytes in base64url") }
        return bytes
    }

    /// Whole seconds, or another number that is not negative.
    func number(_ name: String) throws(ClientProblem) -> Int64 {
        guard let value = document.root[name], let number = document.integer(value, in: 0...Int(Int64.max >> 1)) else {
            throw missing(name, "a whole number")
        }
        return Int64(number)
    }

    func token() throws(ClientProblem) -> SessionToken {
        guard let token = SessionToken(Array(try text("token").utf8).span) else { throw missing("token", "a token") }
        return token
    }

    func missing(_ name: String, _ expected: String) -> ClientProblem {
        .notUnderstood("\(route): \(name): expected \(expected)")
    }
}
