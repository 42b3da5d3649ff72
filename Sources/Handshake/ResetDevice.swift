import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The device that sets a new password by a reset code, and its proof. The account then knows the device: its
/// owner signs in even while strangers use up the account's limit.
///
/// The device signs, which proves that it has the key; the MAC is under a key from the reset code, which only
/// the sender and the authority know, since the code is sealed with the record. Without the MAC, an attacker
/// on the network path could register a device of its own. Source: docs/protocol.md, "Sign-up".
package struct ResetDevice: Sendable {
    package let signingKey: P256Point
    package let kind: Device.Class
    package let name: Device.Name

    package init(signingKey: P256Point, kind: Device.Class, name: Device.Name) {
        self.signingKey = signingKey
        self.kind = kind
        self.name = name
    }

    /// The bytes that the device signs. `handle` is fresh for each registration, so a signature is good for
    /// one of them.
    package func transcript(app: String, account: AccountName, handle: [UInt8], sealedRecord: [UInt8])
        -> [UInt8]
    {
        let digest = SHA256.digest(sealedRecord.span)
        var transcript = Transcript("reset device")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(handle)
        transcript.add(digest.indices.map { digest[$0] })
        transcript.add(signingKey.bytes)
        transcript.add(kind.rawValue)
        transcript.add(name.description)
        return transcript.bytes
    }

    /// Authenticates the transcript and the signature. `code` is the reset code as it was typed, in UTF-8.
    package static func key(from code: Secret) -> HMACSHA256 {
        let key = HKDFSHA512.expand(
            HKDFSHA512.extract(from: [code]), info: Array("countersign/1 reset device".utf8), count: 32)
        return key.withExposedBytes { HMACSHA256(key: $0) }
    }
}
