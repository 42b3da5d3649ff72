import CountersignSeal

/// Everything both sides said and know, up to the server's MAC: the preamble. Source: RFC 9807 §6.4.2.1.
struct Transcript: Sendable {
    let bytes: [UInt8]

    /// `clientIdentity` and `serverIdentity` as ``Identity/bytes(orKey:)`` gives them.
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

    /// With the server's MAC behind it, which is what the client's covers. Source: §6.4.3.
    func digest(followedBy serverMAC: Tag) -> [UInt8] { SHA512.array(bytes + serverMAC.array) }
}

extension SHA512 {
    fileprivate static func array(_ bytes: [UInt8]) -> [UInt8] {
        let digest = digest(bytes.span)
        return (0..<64).map { digest[$0] }
    }
}
