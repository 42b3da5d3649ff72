import CountersignWire

/// One request and its response as a handler sees them, independent of the version of HTTP.
///
/// Confined to its loop: a handler runs on that loop, and does not use the exchange after it has returned.
package protocol Exchange: AnyObject {
    var request: Request { get set }
    var loop: EventLoop { get }
    /// The client's address as text.
    var peer: String { get }
    /// Whether the connection began with a PROXY header that names no client. Such a proxy adds nothing to
    /// the requests, so their fields about the client come from the client itself.
    var isClientUnnamed: Bool { get }
    /// The status of the response; nil until the response has begun.
    var answeredStatus: Int? { get }
    /// Bytes of response bodies sent.
    var answeredBytes: Int { get }
    /// Why the response was not delivered whole; nil unless that has happened.
    var deliveryFailure: DeliveryFailure? { get }
    /// From the first byte of the request that was sent to the upstream until the head of its final response,
    /// or until that was given up; nil for a request that was not sent.
    var upstreamNanoseconds: UInt64? { get }

    /// The shared counters of the client's address (IPv4 address or IPv6 /64), one object per address and
    /// process.
    var source: AddressRecord { get }
    /// Counts this exchange to the address that a trusted proxy names, instead of to the connection's peer.
    func attribute(to address: NetworkAddress)
    /// Records what was established about the caller; called once, after the signature was verified. It
    /// decides which budget a held body and the connection count to.
    func recordProof(_ proof: CallerProof)

    /// Whether the address or account that this exchange counts to has too many requests in flight.
    var isOverloaded: Bool { get }
    /// Throws a refusal if ``isOverloaded``. The handler calls it when it knows what the caller has proved.
    func checkOverload() throws(Refusal)
    /// State that the handler keeps with the connection between requests.
    var attachment: AnyObject? { get set }

    /// Reads the whole body into `request.body`, at the expense of the budget for bodies of unproven callers
    /// unless ``recordProof(_:)`` was called before. Over `limit` bytes, or the limit for held bodies:
    /// `too-large`; over a budget: `unavailable`.
    func readWholeBody(atMost limit: Int) async throws(Refusal)
    /// Closes the connection after the response to this request.
    func closeAfterAnswer()
    /// Sends a whole response. A second response is not sent.
    func respond(_ answer: ServerResponse) async
    /// The same without waiting: what the client does not take at once is sent when the handler has
    /// returned. False, and nothing is done, if the response is too long for that. Called from
    /// ``Handler/handleAtOnce(_:)`` as its last act, which then returns ``ImmediateOutcome/answered``, or
    /// from any other function of the handler.
    func respondAtOnce(_ response: ResponseBytes) -> Bool
    /// Sends the request to the upstream, and its answer back. Throws while no part of an answer was sent;
    /// a failure after that closes the client's connection, since the answer has begun.
    func forward(_ forwarding: consuming ForwardedRequest, to pool: UpstreamPool) async throws(Refusal)

    /// Reads the body into `request.body` like ``readWholeBody(atMost:)``, if all of it has arrived; false,
    /// and nothing is done, if some of it has not, or if its length is unknown.
    func readArrivedBody(atMost limit: Int) throws(Refusal) -> Bool
    /// Begins what ``forward(_:to:)`` does and returns at once; `observer` learns how it ended. For a request
    /// whose body is whole, called from ``Handler/handleAtOnce(_:)`` or ``SuspendedRequest/goOn()`` as its
    /// last act, which then returns ``ImmediateOutcome/forwarded``.
    func forward(
        _ forwarding: consuming ForwardedRequest, to pool: UpstreamPool,
        reportingTo observer: any ForwardObserver)
    /// Has the loop call ``SuspendedRequest/goOn()`` of a request whose handler has returned
    /// ``ImmediateOutcome/suspended``. May be called on any thread.
    func goOn(with request: any SuspendedRequest)
}

/// A request that waits for something else than a socket, without a task.
package protocol SuspendedRequest: AnyObject, Sendable {
    /// Called on the loop of its exchange, like ``Handler/handleAtOnce(_:)``.
    func goOn() -> ImmediateOutcome
}

/// Learns how a request ended that was forwarded without a task. Confined to the loop of its exchange.
package protocol ForwardObserver: AnyObject {
    /// The response was sent, or cut short. Returns what is left to wait for before the exchange ends; nil if
    /// nothing is.
    func didForward(_ exchange: any Exchange) -> (() async -> Void)?
    /// No part of a response was sent: answers with the refusal.
    func didFail(_ refusal: Refusal, on exchange: any Exchange) async
}

/// What a handler has done of a request without waiting.
package enum ImmediateOutcome {
    /// Nothing that matters if ``Handler/handle(_:)`` handles the request from the beginning.
    case declined
    /// The handler has called ``Exchange/forward(_:to:reportingTo:)``.
    case forwarded
    /// The handler has called ``Exchange/respondAtOnce(_:)``, which returned true.
    case answered
    /// The handler will call ``Exchange/goOn(with:)``.
    case suspended
    /// The rest waits for something: the engine calls it once, and the exchange ends when it returns.
    case waits(() async -> Void)
}

extension Exchange {
    /// Reads the whole body with no limit but the one for held bodies.
    package func readWholeBody() async throws(Refusal) { try await readWholeBody(atMost: .max) }
}

/// What a verified request established about its caller.
package enum CallerProof: Sendable, Equatable {
    /// The key of a release, which is in every copy of the app.
    case release
    /// A live session of this account.
    case session(account: Int64)
}

/// What the HTTP engine requires of the application: a response to each request, and one to input that is
/// not a request.
package protocol Handler: Sendable {
    /// Called for each request whose head was read; must respond to it.
    func handle(_ exchange: any Exchange) async
    /// The same without a task, as far as nothing has to wait; called first where the engine serves requests
    /// so (``ServingPath/immediate``).
    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome
    /// Called when the input is not a valid request or came too late; the connection closes after the
    /// response.
    func refuse(_ refusal: Refusal, on exchange: any Exchange) async
}

extension Handler {
    package func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome { .declined }
}

/// How the engine serves requests that need not wait.
package enum ServingPath: Sendable {
    /// By callbacks of the poller: no task runs unless something has to wait.
    case immediate
    /// Each by the connection's task, like all others: for tests, which compare both.
    case suspending
}

/// A complete response that the gateway itself makes.
package struct ServerResponse: Sendable {
    package struct Field: Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var status: Int
    package var fields: [Field]
    package var body: [UInt8]

    /// Adds a `Content-Type`; the engine adds the length and the connection fields.
    package init(status: Int, type: String, fields: [Field] = [], body: [UInt8]) {
        self.status = status
        self.fields = [Field("Content-Type", value: type)] + fields
        self.body = body
    }
}

/// A complete response as bytes. Its memory serves one response after the other. Confined to its loop.
package final class ResponseBytes {
    package var status = 200
    /// Field lines, each with its CRLF; the engine adds `Date`, the length and the connection fields.
    package var fields = ByteBuffer(capacity: 1_024)
    package var body = ByteBuffer(capacity: 512)

    package init() {}

    /// Begins another response.
    package func begin(status: Int) {
        self.status = status
        fields.clear()
        body.clear()
    }
}

extension ServerResponse {
    /// A copy of the response.
    package init(_ response: ResponseBytes) {
        status = response.status
        body = response.body.array
        fields = response.fields.text.split(separator: "\r\n").map { line in
            let name = line.prefix { $0 != ":" }
            return Field(String(name), value: String(line.dropFirst(name.count + 2)))
        }
    }
}

/// Reason phrases, which have no meaning for software and help human readers. Source: RFC 9110 §15.
package enum ReasonPhrase {
    /// The reason phrase of a common status code; nil for any other.
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
        case 421: "Misdirected Request"
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
