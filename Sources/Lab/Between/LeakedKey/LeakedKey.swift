/// The key of a server's certificate in the attacker's hand, after the traffic was recorded: what does it open? TLS 1.2 with RSA key exchange
/// wholly; what has forward secrecy not at all, and that is found by trying. Source: RFC 5246, RFC 7627, RFC 8446.
package struct LeakedKey: Sendable {
    private let key: PrivateKey

    /// As it lay on the server's disk.
    package init(pem: String) throws(StageFault) {
        guard let key = PrivateKey(pem: pem) else { throw StageFault("the leaked key is none in PEM") }
        self.key = key
    }

    /// What was said in one conversation.
    package func read(_ conversation: Conversation) -> Result<Conversation, NotReadable> {
        var sessions = SessionSecrets()
        return Result { () throws(NotReadable) in try open(conversation, &sessions) }
    }

    /// What was said in each. Resumed sessions are read with the secrets of those that they resume.
    package func read(_ recording: Recording) -> [Result<Conversation, NotReadable>] {
        var sessions = SessionSecrets()
        var results: [Result<Conversation, NotReadable>] = []
        for conversation in recording.conversations {
            do { results.append(.success(try open(conversation, &sessions))) } catch { results.append(.failure(error)) }
        }
        return results
    }

    private func open(
        _ conversation: Conversation, _ sessions: inout SessionSecrets
    ) throws(NotReadable) -> Conversation {
        let handshake = try RecordedHandshake(conversation)
        guard let suite = CipherSuite(handshake.serverHello.suite) else {
            throw .unknownSuite(handshake.serverHello.suite)
        }
        switch suite.exchange {
        case .tls13: return try TLS13Attempt(handshake, suite).open(with: key)
        case .rsa, .ephemeral: return try TLS12Attempt(handshake, suite).open(with: key, &sessions)
        }
    }
}
