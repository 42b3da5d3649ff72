/// Somebody who reads the victim's requests and decides what becomes of them. Speaks HTTP/1.1, below it TLS where there is any.
struct ManInTheMiddle: Sendable {
    /// What becomes of a request. `forward` has the server answer a request, that one or another. Nil cuts the connection.
    typealias Deed = @Sendable (RawRequest, _ forward: (RawRequest) throws -> RawResponse) -> RawResponse?

    /// Under which certificate he shows himself; nil where there is no TLS.
    let side: TLSSide?
    /// His way to the server.
    let server: @Sendable () throws(NetworkProblem) -> RawClient
    let ledger: Ledger
    let deed: Deed

    /// Serves one connection, and closes it.
    func serve(_ descriptor: Int32) {
        ledger.note { $0.connections += 1 }
        guard let side else { return converse(Link(descriptor)) }
        do {
            let link = try Link.accept(descriptor, as: side)
            ledger.note { $0.handshakes += 1 }
            converse(link)
        } catch {
            ledger.note { $0.brokenOff.append(error.reason) }
        }
    }

    private func converse(_ link: Link) {
        var reader = MessageReader(link)
        var isFirst = true
        while true {
            let read: MessageReader.Read<RawRequest>
            do {
                read = try reader.request { link.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
            } catch {
                // A client of TLS 1.3 is through with its handshake before it says what it thinks of the certificate.
                if isFirst, side != nil, reader.left.isEmpty { ledger.note { $0.brokenOff.append(error.reason) } }
                return
            }
            isFirst = false
            guard let answer = answer(read), link.write(answer.bytes),
                !announcesEnd(read.message.fields), !announcesEnd(answer.message.fields)
            else { return }
        }
    }

    /// What is left as it was goes on as the same bytes: nobody can tell that it was read.
    private func answer(_ read: MessageReader.Read<RawRequest>) -> MessageReader.Read<RawResponse>? {
        var last: MessageReader.Read<RawResponse>?
        ledger.note { $0.requests += 1 }
        let answer = deed(read.message) { request in
            let bytes = request == read.message ? read.bytes : request.bytes
            let response = try server().exchange(bytes, method: request.method)
            last = response
            return response.message
        }
        ledger.note { $0.exchanges.append(RawExchange(request: read.message, response: last?.message)) }
        guard let answer else { return nil }
        if let last, last.message == answer { return last }
        return MessageReader.Read(message: answer, bytes: answer.bytes)
    }

    private func announcesEnd(_ fields: RawFields) -> Bool { fields["connection"]?.lowercased() == "close" }
}

extension NetworkProblem {
    /// Without the kind, which the place says.
    fileprivate var reason: String {
        switch self {
        case .notReached(let why), .noHandshake(let why), .cut(let why), .unreadable(let why): why
        }
    }
}
