import CountersignClient
import CountersignTransport
import CountersignWire

/// What a call's transport has to know of the kind of server that it goes to.
protocol CallDialect: Sendable {
    /// What is sent with a draft.
    func body(of draft: Draft) -> RequestBody
    /// Whether more of an answer has to be there before it can be judged. `body` is what has come of it.
    func needsMore(_ answer: IncomingResponse, _ body: [UInt8]) -> Bool
    /// Why the server refuses, in one of the protocol's codes; nil for all that is no refusal.
    func refusalCode(of response: Response) -> String?
}

/// Answers that matter are signed, and refusals have a status for it.
struct SignedDialect: CallDialect {
    let body: RequestBody

    /// Bytes of an answer that is read ahead to be judged; a longer one is none of the authority's.
    private static let most = 1 << 20

    func body(of draft: Draft) -> RequestBody { body }

    func needsMore(_ answer: IncomingResponse, _ body: [UInt8]) -> Bool {
        (answer.status >= 400 || answer.value(of: "signature-input") != nil)
            && body.count <= SignedDialect.most
    }

    /// Only a code that the protocol knows: anything else is text of who knows whom.
    func refusalCode(of response: Response) -> String? {
        guard response.status >= 400 else { return nil }
        return Refusal.Code(rawValue: Notice(response).code)?.rawValue
    }
}

/// Schemes from before write into bodies, and refusals are JSON under any status.
struct LegacyDialect: CallDialect {
    /// In place of the draft's.
    let streamed: RequestBody?

    func body(of draft: Draft) -> RequestBody {
        streamed ?? (draft.body.isEmpty ? .none : .bytes(draft.body))
    }

    func needsMore(_ answer: IncomingResponse, _ body: [UInt8]) -> Bool { LegacyAnswers.mayRefuse(body) }

    func refusalCode(of response: Response) -> String? { LegacyAnswers.code(of: response) }
}
