/// What of a handshake passes unencrypted, and the encrypted records behind it. Source: RFC 5246 §7.4, RFC 8446 §4.
struct RecordedHandshake {
    struct Message {
        var kind: UInt8
        var body: [UInt8]
        /// With its head, as transcripts have it.
        var bytes: [UInt8]
    }

    enum Kind {
        static let newSessionTicket: UInt8 = 4
        static let serverKeyExchange: UInt8 = 12
        static let clientKeyExchange: UInt8 = 16
    }

    var clientHello: Hello
    var serverHello: Hello
    /// In the order in which they were sent, hellos included, up to each side's first encrypted record.
    var client: [Message]
    var server: [Message]
    /// From the first one that is encrypted.
    var clientRecords: [TLSRecord]
    var serverRecords: [TLSRecord]

    init(_ conversation: Conversation) throws(NotReadable) {
        guard conversation.isTLS else { throw .noHandshake("this is not TLS") }
        (client, clientRecords) = RecordedHandshake.split(TLSRecord.all(in: conversation.client))
        (server, serverRecords) = RecordedHandshake.split(TLSRecord.all(in: conversation.server))
        guard let asked = client.first, asked.kind == 1, let answered = server.first, answered.kind == 2,
            let clientHello = Hello(client: asked.body), let serverHello = Hello(server: answered.body)
        else { throw .noHandshake("it does not begin with two hellos") }
        guard !clientRecords.isEmpty, !serverRecords.isEmpty else { throw .noHandshake("it was broken off") }
        self.clientHello = clientHello
        self.serverHello = serverHello
    }

    func first(_ kind: UInt8) -> Message? { (client + server).first { $0.kind == kind } }

    /// Messages may share records, and records messages. In TLS 1.2 `change_cipher_spec` stands before the encrypted records; in TLS 1.3 it
    /// means nothing, and they are application data from the first. Source: RFC 5246 §7.1, RFC 8446 §5.
    private static func split(_ records: [TLSRecord]) -> (messages: [Message], encrypted: [TLSRecord]) {
        let open = records.prefix { $0.kind == .handshake }
        var encrypted = records.dropFirst(open.count)
        if encrypted.first?.kind == .changeCipherSpec { encrypted = encrypted.dropFirst() }
        return (messages(in: open.flatMap(\.payload)), Array(encrypted))
    }

    static func messages(in bytes: [UInt8]) -> [Message] {
        var reader = ByteReader(bytes)
        var messages: [Message] = []
        while let kind = reader.take(1), let body = reader.vector(3) {
            let count = body.count
            messages.append(
                Message(
                    kind: kind[0], body: body,
                    bytes: kind + [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255)] + body))
        }
        return messages
    }
}

/// How either side opens. Source: RFC 5246 §7.4.1.
struct Hello {
    var random: [UInt8]
    var sessionID: [UInt8]
    /// The server's choice; 0 in a client's.
    var suite: UInt16
    /// By their numbers.
    var extensions: [Int: [UInt8]] = [:]

    /// What stands for the random where the server asks for another hello: SHA-256 of `HelloRetryRequest`. Source: RFC 8446 §4.1.3.
    static let retryRequest = Derivation(hash: .sha256).digest(Array("HelloRetryRequest".utf8))

    init?(client body: [UInt8]) {
        var reader = ByteReader(body)
        guard reader.take(2) != nil, let random = reader.take(32), let session = reader.vector(1),
            reader.vector(2) != nil, reader.vector(1) != nil
        else { return nil }
        (self.random, sessionID, suite) = (random, session, 0)
        readExtensions(&reader)
    }

    init?(server body: [UInt8]) {
        var reader = ByteReader(body)
        guard reader.take(2) != nil, let random = reader.take(32), let session = reader.vector(1),
            let suite = reader.number(2), reader.take(1) != nil
        else { return nil }
        (self.random, sessionID, self.suite) = (random, session, UInt16(suite))
        readExtensions(&reader)
    }

    private mutating func readExtensions(_ reader: inout ByteReader) {
        var list = ByteReader(reader.vector(2) ?? [])
        while let kind = list.number(2), let value = list.vector(2) { extensions[kind] = value }
    }
}
