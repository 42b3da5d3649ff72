import CountersignHandshake
import CountersignSeal
import CountersignWire

/// A device's two key pairs, made once and kept for all of its sessions: one signs, the other agrees. Their
/// public halves, and where the private ones are: those are in a vault item of their own (``DeviceKeyItem``)
/// or with a person's presence.
package struct DeviceKeys: Sendable, Equatable {
    let signingPoint: P256Point
    let agreementPoint: P256Point
    /// What makes and uses them.
    package let storage: KeyStorage
    /// Whether a signature needs somebody present.
    package let isBoundToPresence: Bool

    /// Names the signing key wherever it is kept: 32 hexadecimal digits of its public half's SHA-256.
    package var name: String {
        let digest = SHA256.digest(signingPoint.bytes.span)
        return Hex.encode(digest.span.extracting(0..<16))
    }

    /// The device as logins present it.
    func device(_ kind: Device.Class, _ name: Device.Name) -> Device {
        Device(
            signingKey: signingPoint, agreementKey: agreementPoint, kind: kind, name: name, keyStorage: storage)
    }
}

extension DeviceKeys {
    private enum Tag {
        static let (signingPoint, agreementPoint): (UInt8, UInt8) = (1, 2)
        static let (storage, binding): (UInt8, UInt8) = (3, 4)
    }

    private static let presence = "presence"

    /// Nil where they are not what ``contents`` wrote, and where a later version keeps them in a place that
    /// this one does not know: then a login makes others.
    init?(_ contents: Secret) {
        guard let parts = StateParts(contents),
            let signing = parts.bytes(Tag.signingPoint).flatMap({ P256Point($0) }),
            let agreement = parts.bytes(Tag.agreementPoint).flatMap({ P256Point($0) }),
            let storage = parts.text(Tag.storage).flatMap(KeyStorage.init)
        else { return nil }
        switch parts.text(Tag.binding) {
        case nil: isBoundToPresence = false
        case DeviceKeys.presence: isBoundToPresence = true
        default: return nil
        }
        (signingPoint, agreementPoint, self.storage) = (signing, agreement, storage)
    }

    var contents: Secret {
        var parts = StateParts()
        parts.set(Tag.signingPoint, signingPoint.bytes)
        parts.set(Tag.agreementPoint, agreementPoint.bytes)
        parts.set(Tag.storage, storage.rawValue)
        parts.set(Tag.binding, isBoundToPresence ? DeviceKeys.presence : nil)
        return parts.contents
    }
}
