import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire
import Glibc

/// One operation of a trace, as a collector receives it. Source: OTLP 1.x, `trace.proto`.
struct TraceSpan: Sendable {
    enum Kind: Int64, Sendable {
        case server = 2
        case client = 3
    }

    var trace: TraceID
    var id: SpanID
    var parent: SpanID?
    var kind: Kind
    var name: String
    /// Nanoseconds of Unix time.
    var start: Int64
    var end: Int64
    /// Strings and whole numbers.
    var attributes: [(name: String, value: JSONValue)]
    var isFailed: Bool

    /// As OTLP's JSON encoding: ids in hexadecimal digits, 64-bit numbers as strings.
    var json: JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("traceId", .string(trace.text)), ("spanId", .string(id.text)),
        ]
        if let parent { members.append(("parentSpanId", .string(parent.text))) }
        members += [
            ("name", .string(name)), ("kind", .integer(kind.rawValue)),
            ("startTimeUnixNano", .string(String(start))), ("endTimeUnixNano", .string(String(end))),
            ("attributes", TraceSpan.json(of: attributes)),
        ]
        if isFailed { members.append(("status", ["code": 2])) }
        return .object(members)
    }

    /// A list of keys and values.
    static func json(of attributes: [(name: String, value: JSONValue)]) -> JSONValue {
        .array(
            attributes.map { attribute in
                let value: JSONValue =
                    if case .integer(let number) = attribute.value {
                        ["intValue": .string(String(number))]
                    } else {
                        ["stringValue": attribute.value]
                    }
                return ["key": .string(attribute.name), "value": value]
            })
    }
}

/// Makes the spans of a request that has ended. The names of attributes are those of OpenTelemetry's
/// semantic conventions for HTTP where they have one, and begin with `countersign.` otherwise.
struct TraceSpanBuilder {
    let trace: RequestTrace
    let event: RequestEvent
    let request: Request
    let exchange: any Exchange
    /// The release whose key the caller has proved.
    let release: AppRelease?

    /// The gateway's span, and that of the request to the backend if there was one.
    func spans(client: String, backend: String?) -> [TraceSpan] {
        let now = TraceSpanBuilder.wallNanoseconds()
        let offset = now - Int64(clamping: RequestEvent.nanoseconds())
        let start = Int64(clamping: event.began) + offset
        let status = exchange.answeredStatus ?? 0
        let server = TraceSpan(
            trace: trace.id, id: trace.server, parent: trace.caller, kind: .server, name: method,
            start: start,
            end: start + Int64(clamping: event.nanoseconds), attributes: attributes(client: client),
            isFailed: event.failure != nil || status >= 500)
        guard let forwarded = trace.forwarded else { return [server] }
        let sent = Int64(clamping: forwarded) + offset
        let duration = exchange.upstreamNanoseconds.map { Int64(clamping: $0) }
        var attributes: [(name: String, value: JSONValue)] = [("http.request.method", .string(method))]
        if let backend { attributes.append(("server.address", .string(backend))) }
        if let failure = event.failure {
            attributes.append(("error.type", .string(failure.rawValue)))
        } else {
            attributes.append(("http.response.status_code", .integer(Int64(status))))
        }
        return [
            server,
            TraceSpan(
                trace: trace.id, id: trace.client, parent: trace.server, kind: .client, name: method,
                start: sent, end: duration.map { sent + $0 } ?? server.end, attributes: attributes,
                isFailed: event.failure != nil || status >= 500),
        ]
    }

    private func attributes(client: String) -> [(name: String, value: JSONValue)] {
        var found: [(name: String, value: JSONValue)] = [
            ("http.request.method", .string(method)), ("url.path", .string(path)),
            ("url.scheme", .string(request.transport == .tls ? "https" : "http")),
            ("http.response.status_code", .integer(Int64(exchange.answeredStatus ?? 0))),
            ("client.address", .string(client)), ("countersign.event", .string(event.id.text)),
            ("countersign.code", .string(event.outcome(on: exchange))),
        ]
        if let failure = event.failure {
            found.append(("error.type", .string(failure.rawValue)))
        } else if let refusal = event.refusal {
            found.append(("error.type", .string(refusal.code.name)))
        }
        if let release {
            found.append(("countersign.app", .string(release.app)))
            found.append(("countersign.release", .string(release.id.description)))
            found.append(
                ("countersign.scheme", .string(event.caller?.schemeName ?? release.scheme.rawValue)))
        }
        return found
    }

    /// `_OTHER` for methods that the conventions do not list, which would make as many names of spans.
    private var method: String {
        let text = String(decoding: request.head[request.method.range], as: UTF8.self)
        return TraceSpanBuilder.methods.contains(text) ? text : "_OTHER"
    }

    private static let methods: Set = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    private var path: String {
        let path = request.head.span.extracting(request.path.range)
        if let redacted = BearerTokenScanner.redacted(path) {
            return String(decoding: redacted, as: UTF8.self).cut(toEscaped: RequestEvent.longestPath)
        }
        return String(decoding: request.head[request.path.range], as: UTF8.self)
            .cut(toEscaped: RequestEvent.longestPath)
    }

    private static func wallNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
