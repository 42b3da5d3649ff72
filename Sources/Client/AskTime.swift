import CountersignSeal
import CountersignWire

/// Asks the authority what time it is, and keeps the difference to the device's clock.
package struct AskTime: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    /// Seconds that the device's clock is behind. The answer must be signed by the authority's key, to this very nonce, and
    /// have come in time.
    nonisolated(nonsending) package func callAsFunction() async throws(ClientProblem) -> Int64 {
        guard installation.authorityKey != nil else {
            throw .incomplete("the authority's key is not known; without it nobody's time is believed")
        }
        let nonce = Base64.encode(surroundings.random.bytes(16).span, .url)
        let draft = installation.draft("GET", "/time?nonce=\(nonce)")
        let heard = try await Listener(surroundings: surroundings).ask(
            draft, as: installation.release, at: surroundings.time.now
        ) { _ in installation.authorityKeys }
        let answer: GenuineAnswer
        switch heard {
        case .genuine(let found): answer = found
        case .begun: throw .notUnderstood("time: the answer is too long")
        case .unsigned(_, let why): throw .notGenuine("time: \(why.detail)")
        }
        if let notice = answer.notice { throw .refused(notice) }
        let body = try AnswerBody(answer.response, of: "time")
        guard try body.text("nonce") == nonce else { throw .notGenuine("time: an answer to another question") }
        guard answer.took < ServerClock.mostDelay else {
            throw .notGenuine("time: the answer took \(answer.took / 1000) s, and may be as old")
        }
        let told = try body.number("time")
        surroundings.learn(told)
        return told - surroundings.time.now
    }
}
