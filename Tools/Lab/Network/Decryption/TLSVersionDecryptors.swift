/// Decrypts a TLS 1.2 connection with the server's key.
struct TLS12Decryptor {
    let handshake: RecordedHandshake
    let suite: CipherSuite
    private let derivation: TLSKeyDerivation

    init(_ handshake: RecordedHandshake, suite: CipherSuite) {
        (self.handshake, self.suite) = (handshake, suite)
        derivation = TLSKeyDerivation(hash: suite.hash)
    }

    func decrypt(with key: LeakedPrivateKey, sessions: inout TLSSessionSecrets) throws(TLSDecryptionError)
        -> RecordedConnection
    {
        guard let exchange = handshake.first(RecordedHandshake.Kind.clientKeyExchange) else {
            guard let master = sessions.resumed(by: handshake) else { throw .resumesUnknownSession }
            guard let opened = opened(master) else { throw .isOfAnotherKey }
            sessions.keep(master, of: handshake)
            return opened
        }
        guard suite.exchange == .rsa else { return try openEphemeral(exchange.body, with: key) }
        var reader = ByteReader(exchange.body)
        guard let sealed = reader.vector(2) else { throw .noHandshake("a key exchange cut short") }
        guard let premaster = key.decrypt(sealed), let opened = opened(master(premaster)) else {
            throw .isOfAnotherKey
        }
        sessions.keep(master(premaster), of: handshake)
        return opened
    }

    /// Tries the certificate's key as the ephemeral key, which a faulty server may use.
    private func openEphemeral(_ exchange: [UInt8], with key: LeakedPrivateKey) throws(TLSDecryptionError)
        -> RecordedConnection
    {
        var offered = ByteReader(handshake.first(RecordedHandshake.Kind.serverKeyExchange)?.body ?? [])
        var answered = ByteReader(exchange)
        guard offered.number(1) == 3, let group = offered.number(2), let share = answered.vector(1) else {
            throw .noHandshake("a key exchange on no named group")
        }
        guard let premaster = key.agree(with: share, on: group) else {
            throw .needsEphemeralKey(
                tried: "an \(key.kind) key agrees on nothing with a share on group \(group)")
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
            return derivation.prf(secret: premaster, label: "master secret", seed: seed, count: 48)
        }
        // The ClientHello, all unencrypted messages of the server, then the client's up to its key exchange.
        let keyExchange =
            handshake.client.firstIndex { $0.kind == RecordedHandshake.Kind.clientKeyExchange } ?? 0
        let server = handshake.server.filter { $0.kind != RecordedHandshake.Kind.newSessionTicket }
        let session = handshake.client.prefix(1) + server + handshake.client.dropFirst().prefix(keyExchange)
        return derivation.prf(
            secret: premaster, label: "extended master secret",
            seed: derivation.digest(session.flatMap(\.bytes)), count: 48)
    }

    /// Nil where a record cannot be decrypted. Source: RFC 5246 §6.3.
    private func opened(_ master: [UInt8]) -> RecordedConnection? {
        let (size, salt) = (suite.cipher.keyLength, suite.cipher.saltLength)
        var block = ByteReader(
            derivation.prf(
                secret: master, label: "key expansion",
                seed: handshake.serverHello.random + handshake.clientHello.random,
                count: 2 * (size + salt)))
        guard let clientKey = block.take(size), let serverKey = block.take(size),
            let clientSalt = block.take(salt),
            let serverSalt = block.take(salt)
        else { return nil }
        var client = TLSRecordCipher(suite.cipher, version: .tls12, key: clientKey, salt: clientSalt)
        var server = TLSRecordCipher(suite.cipher, version: .tls12, key: serverKey, salt: serverSalt)
        guard let asked = client.applicationData(in: handshake.clientRecords),
            let answered = server.applicationData(in: handshake.serverRecords)
        else { return nil }
        return RecordedConnection(client: asked, server: answered)
    }
}

extension TLSRecordCipher {
    /// The application data of the records; nil if a record cannot be decrypted, or if there are no records.
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

/// Tries the certificate's key as the server's ephemeral key in TLS 1.3, where it should only sign. Source:
/// RFC 8446 §7.
struct TLS13Decryptor {
    let handshake: RecordedHandshake
    let suite: CipherSuite
    private let derivation: TLSKeyDerivation

    init(_ handshake: RecordedHandshake, suite: CipherSuite) {
        (self.handshake, self.suite) = (handshake, suite)
        derivation = TLSKeyDerivation(hash: suite.hash)
    }

    func decrypt(with key: LeakedPrivateKey) throws(TLSDecryptionError) -> RecordedConnection {
        guard handshake.serverHello.extensions[Extension.preSharedKey] == nil else {
            throw .resumesUnknownSession
        }
        guard handshake.serverHello.random != TLSHello.retryRequest else {
            throw .noHandshake("it begins twice")
        }
        guard let (group, share) = clientShare else {
            throw .noHandshake("no share of the client's on the server's group")
        }
        guard let agreed = key.agree(with: share, on: group) else {
            throw .needsEphemeralKey(
                tried: "an \(key.kind) key agrees on nothing with a share on group \(group)")
        }
        guard let opened = opened(agreed) else {
            throw .needsEphemeralKey(
                tried: "what the key agrees on with the client's share does not open the first record")
        }
        return opened
    }

    private enum Extension {
        static let preSharedKey = 41
        static let keyShare = 51
    }

    /// The client's share on the group that the server selected. Source: RFC 8446 §4.2.8.
    private var clientShare: (group: Int, share: [UInt8])? {
        var chosen = ByteReader(handshake.serverHello.extensions[Extension.keyShare] ?? [])
        var outer = ByteReader(handshake.clientHello.extensions[Extension.keyShare] ?? [])
        guard let group = chosen.number(2), let list = outer.vector(2) else { return nil }
        var offers = ByteReader(list)
        while let offer = offers.number(2), let share = offers.vector(2) {
            if offer == group { return (group, share) }
        }
        return nil
    }

    /// Nil where a record cannot be decrypted.
    private func opened(_ agreed: [UInt8]) -> RecordedConnection? {
        let zeros = [UInt8](repeating: 0, count: suite.hash.length)
        let early = derivation.mac(key: zeros, message: zeros)
        let inHandshake = derivation.mac(
            key: derivation.derive(early, label: "derived", transcript: []), message: agreed)
        var transcript = (handshake.client + handshake.server).flatMap(\.bytes)
        var server = cipher(derivation.derive(inHandshake, label: "s hs traffic", transcript: transcript))
        var client = cipher(derivation.derive(inHandshake, label: "c hs traffic", transcript: transcript))

        // Source: RFC 8446 §7.1.
        var serverRecords = handshake.serverRecords[...]
        guard let flight = takeHandshake(from: &serverRecords, with: &server) else { return nil }
        transcript += flight
        var clientRecords = handshake.clientRecords[...]
        guard takeHandshake(from: &clientRecords, with: &client) != nil else { return nil }

        let main = derivation.mac(
            key: derivation.derive(inHandshake, label: "derived", transcript: []), message: zeros)
        server = cipher(derivation.derive(main, label: "s ap traffic", transcript: transcript))
        client = cipher(derivation.derive(main, label: "c ap traffic", transcript: transcript))
        guard let asked = client.applicationData(in: Array(clientRecords)),
            let answered = server.applicationData(in: Array(serverRecords))
        else { return nil }
        return RecordedConnection(client: asked, server: answered)
    }

    /// Decrypts records up to the one that ends with Finished, and returns their messages.
    private func takeHandshake(from records: inout ArraySlice<TLSRecord>, with cipher: inout TLSRecordCipher)
        -> [UInt8]?
    {
        var bytes: [UInt8] = []
        while let record = records.popFirst() {
            // TLS 1.3 sends it only for compatibility with middleboxes. Source: RFC 8446 §D.4.
            if record.kind == .changeCipherSpec { continue }
            guard let opened = cipher.open(record), opened.kind == .handshake else { return nil }
            bytes += opened.bytes
            if RecordedHandshake.messages(in: bytes).last?.kind == 20 { return bytes }
        }
        return nil
    }

    /// Source: RFC 8446 §7.3.
    private func cipher(_ secret: [UInt8]) -> TLSRecordCipher {
        TLSRecordCipher(
            suite.cipher, version: .tls13,
            key: derivation.expand(secret, label: "key", count: suite.cipher.keyLength),
            salt: derivation.expand(secret, label: "iv", count: 12))
    }
}
