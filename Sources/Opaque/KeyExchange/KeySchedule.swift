import CountersignSeal

/// The keys that come out of the three shared secrets, bound to the transcript. Source: RFC 9807 §6.4.2.2.
struct KeySchedule: Sendable {
    /// 64 bytes: what the login is for.
    let sessionKey: Secret
    let handshakeSecret: Secret
    /// Km2.
    let serverMACKey: Secret
    /// Km3.
    let clientMACKey: Secret
    private let transcript: Transcript

    init(sharedSecrets: [Secret], transcript: Transcript) {
        let key = HKDFSHA512.extract(from: sharedSecrets)
        let digest = transcript.digest
        handshakeSecret = KeySchedule.derive(key, "HandshakeSecret", digest)
        sessionKey = KeySchedule.derive(key, "SessionKey", digest)
        serverMACKey = KeySchedule.derive(handshakeSecret, "ServerMAC", [])
        clientMACKey = KeySchedule.derive(handshakeSecret, "ClientMAC", [])
        self.transcript = transcript
    }

    func serverMAC() -> Secret { mac(of: transcript.digest, serverMACKey) }

    /// Covers the server's MAC too.
    func clientMAC(after serverMAC: Tag) -> Secret { mac(of: transcript.digest(followedBy: serverMAC), clientMACKey) }

    private func mac(of digest: [UInt8], _ key: Secret) -> Secret {
        var mac = HMACSHA512(key: key)
        mac.update(digest.span)
        return mac.finish()
    }

    /// `Derive-Secret`, with TLS 1.3's label structure. Source: §6.4.2.1; RFC 8446 §7.1.
    private static func derive(_ key: Secret, _ label: String, _ context: [UInt8]) -> Secret {
        let label = Array("OPAQUE-\(label)".utf8)
        var info = lengthPrefix(HKDFSHA512.keyCount)
        info += [UInt8(truncatingIfNeeded: label.count)] + label
        info += [UInt8(truncatingIfNeeded: context.count)] + context
        return HKDFSHA512.expand(key, info: info, count: HKDFSHA512.keyCount)
    }
}
