/// The unencrypted part of a recorded handshake, and the encrypted records after it. Source: RFC 5246 §7.4,
/// RFC 8446 §4.
struct RecordedHandshake {
    struct Message {
        var kind: UInt8
        var body: [UInt8]
        /// With its header, as transcripts contain it.
        var bytes: [UInt8]
    }

    enum Kind {
        static let newSessionTicket: UInt8 = 4
        static let serverKeyExchange: UInt8 = 12
        static let clientKeyExchange: UInt8 = 16
    }

    var clientHello: TLSHello
    var serverHello: TLSHello
    /// In the order in which they were sent, hellos included, up to the side's first encrypted record.
    var client: [Message]
    var server: [Message]
    /// From the first encrypted record.
    var clientRecords: [TLSRecord]
    var serverRecords: [TLSRecord]

    init(_ conversation: RecordedConnection) throws(TLSDecryptionError) {
        guard conversation.isTLS else { throw .noHandshake("this is not TLS") }
        (client, clientRecords) = RecordedHandshake.split(TLSRecord.all(in: conversation.client))
        (server, serverRecords) = RecordedHandshake.split(TLSRecord.all(in: conversation.server))
        guard let asked = client.first, asked.kind == 1, let answered = server.first, answered.kind == 2,
            let clientHello = TLSHello(client: asked.body), let serverHello = TLSHello(server: answered.body)
        else { throw .noHandshake("it does not begin with two hellos") }
        guard !clientRecords.isEmpty, !serverRecords.isEmpty else { throw .noHandshake("it was broken off") }
        self.clientHello = clientHello
        self.serverHello = serverHello
    }

    func first(_ kind: UInt8) -> Message? { (client + server).first { $0.kind == kind } }

    /// One record may contain several messages, and one message may span records. In TLS 1.2 the encrypted
    /// records follow `change_cipher_spec`; TLS 1.3 ignores it, and its encrypted records are application
    /// data. Source: RFC 5246 §7.1, RFC 8446 §5.
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

/// A ClientHello or ServerHello. Source: RFC 5246 §7.4.1.
struct TLSHello {
    var random: [UInt8]
    var sessionID: [UInt8]
    /// The suite that the server selected; 0 in a ClientHello.
    var suite: UInt16
    /// By extension number.
    var extensions: [Int: [UInt8]] = [:]

    /// The random of a HelloRetryRequest: SHA-256 of `HelloRetryRequest`. Source: RFC 8446 §4.1.3.
    static let retryRequest = TLSKeyDerivation(hash: .sha256).digest(Array("HelloRetryRequest".utf8))

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

/// Known master secrets, by the session id or ticket that resumes them in TLS 1.2. Source: RFC 5246 §7.3, RFC
/// 5077 §3.
struct TLSSessionSecrets {
    private var secrets: [[UInt8]: [UInt8]] = [:]

    mutating func keep(_ master: [UInt8], of handshake: RecordedHandshake) {
        let id = handshake.serverHello.sessionID
        if !id.isEmpty { secrets[id] = master }
        guard
            let message = handshake.server.first(where: { $0.kind == RecordedHandshake.Kind.newSessionTicket }
            )
        else {
            return
        }
        var reader = ByteReader(message.body)
        if reader.take(4) != nil, let ticket = reader.vector(2), !ticket.isEmpty { secrets[ticket] = master }
    }

    func resumed(by handshake: RecordedHandshake) -> [UInt8]? {
        handshake.clientHello.extensions[35].flatMap { secrets[$0] }
            ?? secrets[handshake.serverHello.sessionID]
    }
}

/// Reads TLS numbers and vectors from bytes in order; nil once too few bytes are left. Source: RFC 8446 §3.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// A big-endian number of `size` bytes.
    mutating func number(_ size: Int) -> Int? { take(size)?.reduce(0) { $0 << 8 | Int($1) } }

    /// A vector whose length field has `size` bytes.
    mutating func vector(_ size: Int) -> [UInt8]? { number(size).flatMap { take($0) } }
}
