/// A connection of the attacker's own that stays open from one request to the next, for one thread: where thousands are sent, or their
/// time counts.
final class KeptConnection {
    private let client: RawClient
    private var link: Link
    private var reader: MessageReader

    init(_ client: RawClient) throws(NetworkProblem) {
        self.client = client
        link = try client.open()
        reader = MessageReader(link)
    }

    /// Sends a request as it is, and waits for the answer. Where the server has closed meanwhile, on a new connection.
    func ask(_ request: [UInt8], method: String) throws(NetworkProblem) -> RawResponse {
        if link.write(request), let answer = try? reader.response(to: method) { return answer.message }
        link = try client.open()
        reader = MessageReader(link)
        link.write(request)
        return try reader.response(to: method).message
    }
}
