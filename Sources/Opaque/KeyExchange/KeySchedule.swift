import CountersignSeal

/// The keys derived from the three shared secrets, bound to the transcript. Source: RFC 9807 §6.4.2.2.
struct KeySchedule: Sendable {
    /// The result of the login, 64 bytes.
    let sessionKey: Secret
    let handshakeSecret: Secret
    /// Km2.
    let serverMACKey: Secret
    /// Km3.
    let clientMACKey: Secret
    private let transcript: Preamble

    init(sharedSecrets: [Secret], transcript: Preamble) {
        let key = HKDFSHA512.extract(from: sharedSecrets)
        let digest = transcript.digest
        handshakeSecret = KeySchedule.derive(from: key, label: "HandshakeSecret", context: digest)
        sessionKey = KeySchedule.derive(from: key, label: "SessionKey", context: digest)
        serverMACKey = KeySchedule.derive(from: handshakeSecret, label: "ServerMAC", context: [])
        clientMACKey = KeySchedule.derive(from: handshakeSecret, label: "ClientMAC", context: [])
        self.transcript = transcript
    }

    func serverMAC() -> Secret { mac(of: transcript.digest, under: serverMACKey) }

    /// The client's MAC, which also covers the server's.
    func clientMAC(after serverMAC: Tag) -> Secret {
        mac(of: transcript.digest(followedBy: serverMAC), under: clientMACKey)
    }

    private func mac(of digest: [UInt8], under key: Secret) -> Secret {
        var mac = HMACSHA512(key: key)
        mac.update(digest.span)
        return mac.finish()
    }

    /// `Derive-Secret`, with TLS 1.3's label structure. Source: §6.4.2.1; RFC 8446 §7.1.
    private static func derive(from key: Secret, label: String, context: [UInt8]) -> Secret {
        let label = Array("OPAQUE-\(label)".utf8)
        var info = lengthPrefix(HKDFSHA512.keyCount)
        info += [UInt8(truncatingIfNeeded: label.count)] + label
        info += [UInt8(truncatingIfNeeded: context.count)] + context
        return HKDFSHA512.expand(key, info: info, count: HKDFSHA512.keyCount)
    }
}

/// The preamble: all messages and common values up to the server's MAC. Source: RFC 9807 §6.4.2.1.
struct Preamble: Sendable {
    let bytes: [UInt8]

    /// `clientIdentity` and `serverIdentity` come from ``PartyIdentity/bytes(orKey:)``.
    init(
        context: LoginContext, clientIdentity: [UInt8], ke1: KE1, serverIdentity: [UInt8],
        credentials: CredentialResponse, serverNonce: Nonce, serverKeyShare: Ristretto255.Element
    ) {
        var bytes = Array("OPAQUEv1-".utf8)
        bytes += lengthPrefix(context.bytes.count) + context.bytes
        bytes += lengthPrefix(clientIdentity.count) + clientIdentity
        bytes += ke1.bytes
        bytes += lengthPrefix(serverIdentity.count) + serverIdentity
        bytes += credentials.bytes
        bytes += serverNonce.array
        bytes += serverKeyShare.bytes
        self.bytes = bytes
    }

    var digest: [UInt8] { SHA512.array(bytes) }

    /// The digest of the preamble followed by the server's MAC, which the client's MAC covers. Source:
    /// §6.4.3.
    func digest(followedBy serverMAC: Tag) -> [UInt8] { SHA512.array(bytes + serverMAC.array) }
}

extension SHA512 {
    fileprivate static func array(_ bytes: [UInt8]) -> [UInt8] {
        let digest = digest(bytes.span)
        return (0..<64).map { digest[$0] }
    }
}
