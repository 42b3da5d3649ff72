/// A connection of the attacker's for many or timed requests, used by one thread.
final class PersistentConnection {
    private let client: RawClient
    private var link: RawConnection
    private var reader: MessageReader

    init(_ client: RawClient) throws(NetworkError) {
        self.client = client
        link = try client.open()
        reader = MessageReader(link)
    }

    /// Sends a request unchanged, and waits for the response. Opens a new connection where the server has
    /// closed this one.
    func send(_ request: [UInt8], method: String) throws(NetworkError) -> RawResponse {
        if link.write(request), let answer = try? reader.response(to: method) { return answer.message }
        link = try client.open()
        reader = MessageReader(link)
        link.write(request)
        return try reader.response(to: method).message
    }
}

/// A response and the time until it arrived.
struct TimedResponse: Sendable {
    var response: RawResponse
    var taken: Duration
}

extension Network {
    /// Sends the requests in order on one connection, for as long as the server keeps it open, so that the
    /// times contain no handshake.
    func sendTimed(_ requests: [RawRequest]) async throws -> [TimedResponse] {
        let messages = requests.map { request in
            var request = request
            if request.fields["Host"] == nil { request.fields["Host"] = authority }
            return request
        }
        return try await DedicatedThread.run { () throws(NetworkError) in
            var answers: [TimedResponse] = []
            var line: TimedConnection?
            for message in messages {
                let open: TimedConnection
                if let line { open = line } else { open = TimedConnection(try self.open()) }
                let answer = try open.sendTimed(message)
                line = answer.response.fields["Connection"]?.lowercased() == "close" ? nil : open
                answers.append(answer)
            }
            return answers
        }
    }
}

/// A connection for several timed requests.
private final class TimedConnection {
    private let link: RawConnection
    private var reader: MessageReader

    init(_ link: RawConnection) {
        self.link = link
        reader = MessageReader(link)
    }

    func sendTimed(_ request: RawRequest) throws(NetworkError) -> TimedResponse {
        let bytes = request.bytes
        let began = ContinuousClock.now
        link.write(bytes)
        let response = try reader.response(to: request.method).message
        return TimedResponse(response: response, taken: ContinuousClock.now - began)
    }
}
