/// Tries what a key gives in TLS 1.3, where the server's certificate only signs: whether it, too, was what the server agreed on the keys
/// with. Source: RFC 8446 §7.
struct TLS13Attempt {
    let handshake: RecordedHandshake
    let suite: CipherSuite
    private let derivation: Derivation

    init(_ handshake: RecordedHandshake, _ suite: CipherSuite) {
        (self.handshake, self.suite) = (handshake, suite)
        derivation = Derivation(hash: suite.hash)
    }

    func open(with key: PrivateKey) throws(NotReadable) -> Conversation {
        guard handshake.serverHello.extensions[Extension.preSharedKey] == nil else { throw .resumesUnknownSession }
        guard handshake.serverHello.random != Hello.retryRequest else { throw .noHandshake("it begins twice") }
        guard let (group, share) = clientShare else {
            throw .noHandshake("no share of the client's on the server's group")
        }
        guard let agreed = key.agree(with: share, on: group) else {
            throw .needsEphemeralKey(tried: "an \(key.kind) key agrees on nothing with a share on group \(group)")
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

    /// On the group that the server chose. Source: RFC 8446 §4.2.8.
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

    /// Nil where a record does not open.
    private func opened(_ agreed: [UInt8]) -> Conversation? {
        let zeros = [UInt8](repeating: 0, count: suite.hash.length)
        let early = derivation.mac(zeros, zeros)
        let inHandshake = derivation.mac(derivation.derive(early, "derived", of: []), agreed)
        var transcript = (handshake.client + handshake.server).flatMap(\.bytes)
        var server = cipher(derivation.derive(inHandshake, "s hs traffic", of: transcript))
        var client = cipher(derivation.derive(inHandshake, "c hs traffic", of: transcript))

        // Source: RFC 8446 §7.1.
        var serverRecords = handshake.serverRecords[...]
        guard let flight = takeHandshake(&serverRecords, &server) else { return nil }
        transcript += flight
        var clientRecords = handshake.clientRecords[...]
        guard takeHandshake(&clientRecords, &client) != nil else { return nil }

        let main = derivation.mac(derivation.derive(inHandshake, "derived", of: []), zeros)
        server = cipher(derivation.derive(main, "s ap traffic", of: transcript))
        client = cipher(derivation.derive(main, "c ap traffic", of: transcript))
        guard let asked = client.applicationData(in: Array(clientRecords)),
            let answered = server.applicationData(in: Array(serverRecords))
        else { return nil }
        return Conversation(client: asked, server: answered)
    }

    /// Opens records up to the one that ends with `Finished`, and gives the messages in them.
    private func takeHandshake(_ records: inout ArraySlice<TLSRecord>, _ cipher: inout RecordCipher) -> [UInt8]? {
        var bytes: [UInt8] = []
        while let record = records.popFirst() {
            // Of no meaning, sent for the sake of old machines in between. Source: RFC 8446 §D.4.
            if record.kind == .changeCipherSpec { continue }
            guard let opened = cipher.open(record), opened.kind == .handshake else { return nil }
            bytes += opened.bytes
            if RecordedHandshake.messages(in: bytes).last?.kind == 20 { return bytes }
        }
        return nil
    }

    /// Source: RFC 8446 §7.3.
    private func cipher(_ secret: [UInt8]) -> RecordCipher {
        RecordCipher(
            suite.cipher, .tls13, key: derivation.expand(secret, "key", count: suite.cipher.keyLength),
            salt: derivation.expand(secret, "iv", count: 12))
    }
}
