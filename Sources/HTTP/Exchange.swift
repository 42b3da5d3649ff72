import CountersignWire

/// One request and the answer to it, as a handler sees them, whatever version of HTTP carries them.
///
/// Confined to its loop: a handler stays on it, and uses the exchange until it returns, not after.
package protocol Exchange: AnyObject {
    var request: Request { get set }
    var loop: EventLoop { get }
    /// The client's address as text.
    var peer: String { get }
    /// Whether the connection began with a PROXY header that names no client, so that the peer is a proxy
    /// that wrote nothing into the requests: what they say of their client is the client's own word.
    var isClientUnnamed: Bool { get }
    /// The status that was sent; nil before an answer was begun.
    var answeredStatus: Int? { get }
    /// Bytes of answer bodies sent.
    var answeredBytes: Int { get }

    /// The shared counters of the client's address (IPv4 address or IPv6 /64), one object per address and process.
    var source: AddressRecord { get }
    /// Counts this exchange to the address that a trusted proxy names, instead of to the connection's peer.
    func attribute(to address: NetworkAddress)
    /// Tells what was established about the caller, once, after the signature held. It decides whose budget a held body and
    /// the connection count to.
    func recordProof(_ proof: CallerProof)

    /// Whether the address or account that this exchange counts to has too many requests in flight.
    var isOverloaded: Bool { get }
    /// Refuses where it is so. The handler asks once it knows what the caller has proved.
    func checkOverload() throws(Refusal)
    /// What the handler keeps with the connection from one request to the next.
    var attachment: AnyObject? { get set }

    /// Reads the whole body into `request.body`, at the expense of the budget for bodies of unproven callers unless
    /// ``recordProof(_:)`` was called before. Over `limit` bytes, or the limit for held bodies: `too-large`; over a budget:
    /// `unavailable`.
    func readWholeBody(atMost limit: Int) async throws(Refusal)
    /// The connection ends behind the answer to this request.
    func closeAfterAnswer()
    /// Answers in one go. A second answer is not sent.
    func respond(_ answer: Answer) async
}

extension Exchange {
    /// The same, where the limit for held bodies is the only one.
    package func readWholeBody() async throws(Refusal) { try await readWholeBody(atMost: .max) }
}

/// What a verified request established about its caller.
package enum CallerProof: Sendable, Equatable {
    /// A release's key: it is in every copy of the app.
    case release
    /// A live session of this account.
    case session(account: Int64)
}

/// What the engine asks of the application: an answer to each request, and one to what was no request at all.
package protocol Handler: Sendable {
    /// Called for each request whose head was read; must answer it.
    func handle(_ exchange: any Exchange) async
    /// Called where the bytes were no request, or came too late; the connection closes behind the answer.
    func refuse(_ refusal: Refusal, _ exchange: any Exchange) async
}

/// A whole answer of our own.
package struct Answer: Sendable {
    package struct Field: Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var status: Int
    package var fields: [Field]
    package var body: [UInt8]

    /// With a `Content-Type`; length and connection fields are the engine's.
    package init(status: Int, type: String, fields: [Field] = [], body: [UInt8]) {
        self.status = status
        self.fields = [Field("Content-Type", type)] + fields
        self.body = body
    }
}

/// Reason phrases, which mean nothing and which people read. Source: RFC 9110 §15.
package enum ReasonPhrase {
    /// Nil where it is not one of the usual ones.
    package static func of(_ status: Int) -> StaticString? {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: nil
        }
    }
}
