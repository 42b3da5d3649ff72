/// Why an admitted request failed: its complete response did not reach the client, or was a server error of
/// the backend. The log, the meter and the metrics name the outcome of such a request by the raw value.
///
/// If no response has begun, the caller gets the refusal `upstream-failed` or `unavailable`. Otherwise it
/// sees only the end of the connection.
package enum DeliveryFailure: String, Sendable, CaseIterable {
    /// No connection to the backend: it is not listening, its name does not resolve, its certificate is not
    /// accepted, or it does not accept a connection in time.
    case upstreamUnreachable = "upstream-unreachable"
    /// All connections to the backend were in use, and none became free in time, or too many requests waited
    /// already.
    case upstreamBusy = "upstream-busy"
    /// The backend closed the connection before its response began.
    case upstreamClosed = "upstream-closed"
    /// The backend did not begin its response in time.
    case upstreamTimeout = "upstream-timeout"
    /// The backend's response is malformed, or its head is too large.
    case upstreamInvalid = "upstream-invalid"
    /// The backend's connection ended within a response.
    case upstreamTruncated = "upstream-truncated"
    /// The backend sent nothing for too long within a response, such as a stream of events.
    case streamIdle = "stream-idle"
    /// The client closed its connection before its body or the response was whole.
    case clientAborted = "client-aborted"
    /// The client read the response too slowly, or sent its body too slowly while others waited for the
    /// connection to the backend. A body that misses its deadline is the refusal `timeout`.
    case clientSlow = "client-slow"
    /// The backend's response has a status of 500 or more, and reached the client completely.
    case upstreamError = "upstream-5xx"

    /// Whether the backend is the cause, not the client.
    package var isCausedByBackend: Bool {
        switch self {
        case .upstreamUnreachable, .upstreamBusy, .upstreamClosed, .upstreamTimeout, .upstreamInvalid,
            .upstreamTruncated, .streamIdle, .upstreamError:
            true
        case .clientAborted, .clientSlow: false
        }
    }

    /// Whether the head of the backend's response had arrived.
    package var isAfterHead: Bool {
        switch self {
        case .upstreamTruncated, .streamIdle, .upstreamError: true
        default: false
        }
    }

    /// The position in `allCases`, for tables.
    package var ordinal: Int {
        switch self {
        case .upstreamUnreachable: 0
        case .upstreamBusy: 1
        case .upstreamClosed: 2
        case .upstreamTimeout: 3
        case .upstreamInvalid: 4
        case .upstreamTruncated: 5
        case .streamIdle: 6
        case .clientAborted: 7
        case .clientSlow: 8
        case .upstreamError: 9
        }
    }
}
