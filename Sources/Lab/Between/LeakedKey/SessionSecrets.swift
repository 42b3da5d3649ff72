/// Master secrets that were found, by what later conversations of TLS 1.2 resume them with. Source: RFC 5246 §7.3, RFC 5077 §3.
struct SessionSecrets {
    private var secrets: [[UInt8]: [UInt8]] = [:]

    mutating func keep(_ master: [UInt8], of handshake: RecordedHandshake) {
        let id = handshake.serverHello.sessionID
        if !id.isEmpty { secrets[id] = master }
        guard let message = handshake.server.first(where: { $0.kind == RecordedHandshake.Kind.newSessionTicket }) else {
            return
        }
        var reader = ByteReader(message.body)
        if reader.take(4) != nil, let ticket = reader.vector(2), !ticket.isEmpty { secrets[ticket] = master }
    }

    func resumed(by handshake: RecordedHandshake) -> [UInt8]? {
        handshake.clientHello.extensions[35].flatMap { secrets[$0] } ?? secrets[handshake.serverHello.sessionID]
    }
}
