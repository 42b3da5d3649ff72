import CountersignMemory

/// Intercepts the victim's requests, and decides what happens to each. Speaks HTTP/1.1, over TLS in rows that
/// have it.
struct ManInTheMiddle: Sendable {
    /// Handles a request. `forward` sends that request or another one to the server. Nil closes the
    /// connection.
    typealias InterceptionHandler =
        @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?

    /// The certificate and key of the interception; nil where there is no TLS.
    let endpoint: TLSEndpoint?
    /// Connects to the server.
    let server: @Sendable () throws(NetworkError) -> RawClient
    let log: InterceptionLog
    let handler: InterceptionHandler

    /// Serves one connection, and closes it.
    func serve(_ descriptor: Int32) {
        log.update { $0.connections += 1 }
        guard let endpoint else { return serveRequests(on: RawConnection(descriptor)) }
        do {
            let link = try RawConnection.accept(descriptor, as: endpoint)
            log.update { $0.handshakes += 1 }
            serveRequests(on: link)
        } catch {
            log.update { $0.abortedHandshakes.append(error.reason) }
        }
    }

    private func serveRequests(on link: RawConnection) {
        var reader = MessageReader(link)
        var isFirst = true
        while true {
            let read: MessageReader.ParsedMessage<RawRequest>
            do {
                read = try reader.request { link.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
            } catch {
                // In TLS 1.3 a client completes the handshake before it reports that it rejects the
                // certificate.
                if isFirst, endpoint != nil, reader.remainingBytes.isEmpty {
                    log.update { $0.abortedHandshakes.append(error.reason) }
                }
                return
            }
            isFirst = false
            guard let answer = answer(read), link.write(answer.bytes),
                !announcesEnd(read.message.fields), !announcesEnd(answer.message.fields)
            else { return }
        }
    }

    /// An unchanged message is forwarded as the same bytes, so that the interception cannot be detected by
    /// them.
    private func answer(_ read: MessageReader.ParsedMessage<RawRequest>) -> MessageReader.ParsedMessage<
        RawResponse
    >? {
        var last: MessageReader.ParsedMessage<RawResponse>?
        log.update { $0.requests += 1 }
        let answer = handler(read.message) { request in
            let bytes = request == read.message ? read.bytes : request.bytes
            let response = try server().exchange(bytes, method: request.method)
            last = response
            return response.message
        }
        log.update { $0.exchanges.append(RawExchange(request: read.message, response: last?.message)) }
        guard let answer else { return nil }
        if let last, last.message == answer { return last }
        return MessageReader.ParsedMessage(message: answer, bytes: answer.bytes)
    }

    private func announcesEnd(_ fields: RawFields) -> Bool { fields["connection"]?.lowercased() == "close" }
}

extension NetworkError {
    /// The reason without the error's kind, which the context shows.
    fileprivate var reason: String {
        switch self {
        case .notReached(let why), .noHandshake(let why), .cut(let why), .unreadable(let why): why
        }
    }
}

/// What an interception has recorded.
package struct InterceptionRecord: Sendable {
    /// TCP connections that were accepted.
    package var connections = 0
    /// Connections with a completed TLS handshake: the victim accepted the certificate. Zero in plain HTTP.
    package var handshakes = 0
    /// How the other connections ended: by the victim's alert (`alert unknown CA`), or after the handshake
    /// before the first byte of a request.
    package var abortedHandshakes: [String] = []
    /// Requests that were read.
    package var requests = 0
    /// The requests as the victim sent them, and the server's responses to what was forwarded.
    package var exchanges: [RawExchange] = []
}

/// Collects the record.
final class InterceptionLog: Sendable {
    private let entries = Locked(InterceptionRecord())

    var record: InterceptionRecord { entries.with { $0 } }

    func update(_ change: (inout InterceptionRecord) -> Void) { entries.with { change(&$0) } }
}
