import CountersignSeal
import CountersignWire

/// A device as it presents itself at login: the public keys of its two key pairs, and its name.
package struct Device: Sendable, Equatable {
    /// The kind of device; a slot rule may reserve a session for each.
    package enum Class: String, Sendable, CaseIterable {
        case phone, tablet, watch, tv, desktop, other
    }

    /// Verifies the device's signatures.
    package var signingKey: P256Point
    /// Agrees with the server's ephemeral keys at each refresh.
    package var agreementKey: P256Point
    package var kind: Class
    /// A name for display: 1 to 64 bytes of UTF-8 without control characters.
    package var name: Name
    /// Where the device says that it keeps its private keys; nil if it does not say, or the other side does
    /// not ask.
    package var keyStorage: KeyStorage?

    package init(
        signingKey: P256Point, agreementKey: P256Point, kind: Class, name: Name, keyStorage: KeyStorage? = nil
    ) {
        self.signingKey = signingKey
        self.agreementKey = agreementKey
        self.kind = kind
        self.name = name
        self.keyStorage = keyStorage
    }

    package struct Name: Sendable, Equatable, CustomStringConvertible {
        package static let longest = 64

        package let description: String

        package init?(_ text: String) {
            guard (1...Name.longest).contains(text.utf8.count),
                text.unicodeScalars.allSatisfy({
                    $0.properties.generalCategory != .control && $0.value != 0x2028 && $0.value != 0x2029
                })
            else { return nil }
            description = text
        }
    }

    /// Identifies the device: SHA-256 of its signing key.
    package var id: [UInt8] {
        let digest = SHA256.digest(signingKey.bytes.span)
        return digest.indices.map { digest[$0] }
    }
}

extension Device {
    /// The member `device` of a login's request. Source: docs/protocol.md, "Login".
    package var json: JSONValue {
        [
            "signing_key": .bytes(signingKey.bytes), "agreement_key": .bytes(agreementKey.bytes),
            "class": .string(kind.rawValue), "name": .string(name.description),
            "key_storage": keyStorage.map { .string($0.rawValue) } ?? .null,
        ]
    }
}
