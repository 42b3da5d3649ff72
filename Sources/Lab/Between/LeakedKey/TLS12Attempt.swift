/// Opens a conversation of TLS 1.2 with what the server's key gives.
struct TLS12Attempt {
    let handshake: RecordedHandshake
    let suite: CipherSuite
    private let derivation: Derivation

    init(_ handshake: RecordedHandshake, _ suite: CipherSuite) {
        (self.handshake, self.suite) = (handshake, suite)
        derivation = Derivation(hash: suite.hash)
    }

    func open(with key: PrivateKey, _ sessions: inout SessionSecrets) throws(NotReadable) -> Conversation {
        guard let exchange = handshake.first(RecordedHandshake.Kind.clientKeyExchange) else {
            guard let master = sessions.resumed(by: handshake) else { throw .resumesUnknownSession }
            guard let opened = opened(master) else { throw .isOfAnotherKey }
            sessions.keep(master, of: handshake)
            return opened
        }
        guard suite.exchange == .rsa else { return try openEphemeral(exchange.body, with: key) }
        var reader = ByteReader(exchange.body)
        guard let sealed = reader.vector(2) else { throw .noHandshake("a key exchange cut short") }
        guard let premaster = key.decrypt(sealed), let opened = opened(master(premaster)) else { throw .isOfAnotherKey }
        sessions.keep(master(premaster), of: handshake)
        return opened
    }

    /// A server may have used its certificate's key in the place of one for the moment; only trying tells.
    private func openEphemeral(_ exchange: [UInt8], with key: PrivateKey) throws(NotReadable) -> Conversation {
        var offered = ByteReader(handshake.first(RecordedHandshake.Kind.serverKeyExchange)?.body ?? [])
        var answered = ByteReader(exchange)
        guard offered.number(1) == 3, let group = offered.number(2), let share = answered.vector(1) else {
            throw .noHandshake("a key exchange on no named group")
        }
        guard let premaster = key.agree(with: share, on: group) else {
            throw .needsEphemeralKey(tried: "an \(key.kind) key agrees on nothing with a share on group \(group)")
        }
        guard let opened = opened(master(premaster)) else {
            throw .needsEphemeralKey(
                tried: "what the key agrees on with the client's share does not open the first record")
        }
        return opened
    }

    /// Source: RFC 5246 §8.1, RFC 7627 §4.
    private func master(_ premaster: [UInt8]) -> [UInt8] {
        guard handshake.serverHello.extensions[23] != nil else {
            let seed = handshake.clientHello.random + handshake.serverHello.random
            return derivation.prf(premaster, "master secret", seed, count: 48)
        }
        // The client's hello, all that the server says in the open, then the client up to its key exchange.
        let keyExchange = handshake.client.firstIndex { $0.kind == RecordedHandshake.Kind.clientKeyExchange } ?? 0
        let server = handshake.server.filter { $0.kind != RecordedHandshake.Kind.newSessionTicket }
        let session = handshake.client.prefix(1) + server + handshake.client.dropFirst().prefix(keyExchange)
        return derivation.prf(
            premaster, "extended master secret", derivation.digest(session.flatMap(\.bytes)), count: 48)
    }

    /// Nil where a record does not open. Source: RFC 5246 §6.3.
    private func opened(_ master: [UInt8]) -> Conversation? {
        let (size, salt) = (suite.cipher.keyLength, suite.cipher.saltLength)
        var block = ByteReader(
            derivation.prf(
                master, "key expansion", handshake.serverHello.random + handshake.clientHello.random,
                count: 2 * (size + salt)))
        guard let clientKey = block.take(size), let serverKey = block.take(size), let clientSalt = block.take(salt),
            let serverSalt = block.take(salt)
        else { return nil }
        var client = RecordCipher(suite.cipher, .tls12, key: clientKey, salt: clientSalt)
        var server = RecordCipher(suite.cipher, .tls12, key: serverKey, salt: serverSalt)
        guard let asked = client.applicationData(in: handshake.clientRecords),
            let answered = server.applicationData(in: handshake.serverRecords)
        else { return nil }
        return Conversation(client: asked, server: answered)
    }
}

extension RecordCipher {
    /// What applications said in those records; nil where one does not open, or where there is none.
    mutating func applicationData(in records: [TLSRecord]) -> [UInt8]? {
        guard !records.isEmpty else { return nil }
        var data: [UInt8] = []
        for record in records {
            guard let opened = open(record) else { return nil }
            if opened.kind == .applicationData { data += opened.bytes }
        }
        return data
    }
}
