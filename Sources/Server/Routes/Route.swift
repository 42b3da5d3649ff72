import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// One of the authority's own routes, below the prefix. Source: docs/protocol.md, "Routes".
struct Route: Sendable {
    /// Who may call it.
    enum Admission: Sendable {
        /// Anybody, with or without a signature. A body is not read.
        case anyone
        /// Who signs as a live release.
        case release
        /// Who signs as a live session.
        case session
    }

    /// Of a request to any of them: what they read is small.
    static let mostBodyBytes = 64 << 10

    /// HEAD is taken where GET is.
    let method: StaticString
    /// Below the prefix, beginning with `/`. A last part `*` takes any one part, which is ``RouteCall/parameter``.
    let path: StaticString
    let admission: Admission
    let answer: @Sendable (RouteCall) async throws(Refusal) -> RouteAnswer
}

/// A call of a route, once its caller was judged.
struct RouteCall: Sendable {
    let request: Request
    /// Nil for routes that anybody may call.
    let caller: Caller?
    /// The release that an old client's unsigned call comes from by what it says, where its app takes tokens
    /// alone.
    var unsigned: ReleaseKey?
    /// Where the client calls from.
    let address: ClientAddress
    let event: EventID
    /// What the last part of the path is, where the route leaves it open.
    let parameter: String
    /// Whole Unix seconds.
    let now: Int64
}

struct RouteAnswer: Sendable {
    var answer: Answer
    /// Signs the answer in place of the key that its caller signed with: that of a session which this very answer begins or
    /// renews, or the authority's for an answer that is to be believed although its request bears no signature.
    var signer: Credentials?
    /// What that signature binds the answer to at the least; where it cannot, there is none. `content` is for answers in which
    /// the caller finds what he asked with.
    var binding = MessageSignatures.Binding.request

    init(_ answer: Answer) { self.answer = answer }

    /// JSON that nobody is to keep.
    init(_ body: JSONValue, status: Int = 200, fields: [Answer.Field] = [], signer: Credentials? = nil) {
        answer = Answer(
            status: status, type: "application/json", fields: [Answer.Field("Cache-Control", "no-store")] + fields,
            body: Array((body.text + "\n").utf8))
        self.signer = signer
    }
}
