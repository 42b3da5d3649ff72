/// An answer, and how long it took.
struct TimedAnswer: Sendable {
    var response: RawResponse
    var taken: Duration
}

extension Network {
    /// Sends one after the other on one connection, as far as the server keeps it, so that no handshake is in the times.
    func timed(_ requests: [RawRequest]) async throws -> [TimedAnswer] {
        let messages = requests.map { request in
            var request = request
            if request.fields["Host"] == nil { request.fields["Host"] = authority }
            return request
        }
        return try await Blocking.run { () throws(NetworkProblem) in
            var answers: [TimedAnswer] = []
            var line: OpenLine?
            for message in messages {
                let open: OpenLine
                if let line { open = line } else { open = OpenLine(try self.open()) }
                let answer = try open.timed(message)
                line = answer.response.fields["Connection"]?.lowercased() == "close" ? nil : open
                answers.append(answer)
            }
            return answers
        }
    }
}

/// A connection that is used more than once.
private final class OpenLine {
    private let link: Link
    private var reader: MessageReader

    init(_ link: Link) {
        self.link = link
        reader = MessageReader(link)
    }

    func timed(_ request: RawRequest) throws(NetworkProblem) -> TimedAnswer {
        let bytes = request.bytes
        let began = ContinuousClock.now
        link.write(bytes)
        let response = try reader.response(to: request.method).message
        return TimedAnswer(response: response, taken: ContinuousClock.now - began)
    }
}
