import CountersignHTTP
import CountersignSeal
import CountersignWire

/// The answers to calls with an `Idempotency-Key`, in memory: the latest ones, of all tokens together. A
/// restart forgets them.
struct KeptAnswers: Sendable {
    private static let most = 256
    /// So that the calls of one token do not make the server forget those of another.
    private static let mostOfToken = 32

    /// A call that names itself by a key.
    struct Call: Sendable, Equatable {
        let key: String
        /// The token's id.
        let token: String
        /// Of the path and the body.
        let fingerprint: [UInt8]

        init(key: String, token: String, path: String, body: [UInt8]) {
            self.key = key
            self.token = token
            let digest = SHA256.digest((Array(path.utf8) + [0] + body).span)
            fingerprint = (0..<32).map { digest[$0] }
        }
    }

    /// The oldest first.
    private var entries: [(call: Call, answer: ServerResponse)] = []

    /// The answer of the first such call; nil if there was none. Fails if that was another request.
    func find(_ call: Call) -> Result<ServerResponse?, APIProblem> {
        let found = entries.first { $0.call.key == call.key && $0.call.token == call.token }
        guard let found else { return .success(nil) }
        guard found.call == call else {
            return .failure(
                APIProblem(
                    422, code: "key-reused", detail: "Idempotency-Key: it was used for another request"))
        }
        var answer = found.answer
        answer.fields.append(ServerResponse.Field("Countersign-Replayed", value: "true"))
        return .success(answer)
    }

    mutating func keep(_ answer: ServerResponse, to call: Call) {
        let own = entries.indices.filter { entries[$0].call.token == call.token }
        if let oldest = own.first, own.count >= KeptAnswers.mostOfToken { entries.remove(at: oldest) }
        if entries.count >= KeptAnswers.most { entries.removeFirst() }
        entries.append((call, answer))
    }
}

/// The same, shared by calls.
final class KeptAnswerTable: Sendable {
    private let answers = Locked(KeptAnswers())

    func find(_ call: KeptAnswers.Call) throws(APIProblem) -> ServerResponse? {
        let found = answers.with { $0.find(call) }
        switch found {
        case .success(let answer): return answer
        case .failure(let problem): throw problem
        }
    }

    func keep(_ answer: ServerResponse, to call: KeptAnswers.Call) {
        answers.with { $0.keep(answer, to: call) }
    }
}
