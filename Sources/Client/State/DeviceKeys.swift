import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire

/// A device's two key pairs, made once and kept for all of its sessions: one signs, the other agrees on keys.
/// Holds their public halves and where the private ones are: in a vault item of their own
/// (``DeviceKeyItem``), or bound to presence.
package struct DeviceKeys: Sendable, Equatable {
    let signingPoint: P256Point
    let agreementPoint: P256Point
    /// The back end that makes and uses them.
    package let storage: KeyStorage
    /// Whether a signature needs the user's presence.
    package let isBoundToPresence: Bool

    /// The name of the signing key wherever it is stored: 32 hexadecimal digits of its public half's SHA-256.
    package var name: String {
        let digest = SHA256.digest(signingPoint.bytes.span)
        return Hex.encode(digest.span.extracting(0..<16))
    }

    /// The device as logins present it.
    func device(class kind: Device.Class, name: Device.Name) -> Device {
        Device(
            signingKey: signingPoint, agreementKey: agreementPoint, kind: kind, name: name,
            keyStorage: storage)
    }
}

extension DeviceKeys {
    private enum Tag {
        static let (signingPoint, agreementPoint): (UInt8, UInt8) = (1, 2)
        static let (storage, binding): (UInt8, UInt8) = (3, 4)
    }

    private static let presence = "presence"

    /// Nil if ``contents`` did not write them, or if a later version stores them in a place that this one
    /// does not know: then a login makes others.
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
        parts.set(Tag.signingPoint, to: signingPoint.bytes)
        parts.set(Tag.agreementPoint, to: agreementPoint.bytes)
        parts.set(Tag.storage, to: storage.rawValue)
        parts.set(Tag.binding, to: isBoundToPresence ? DeviceKeys.presence : nil)
        return parts.contents
    }
}

/// The private halves of a device's keys as the vault stores them: an item of its own, apart from the
/// session's root. Hardware keys are wrapped and open on no other device.
///
/// It holds several entries, since new keys are stored before the login that may replace the ones in use.
/// Encoded as ``StateParts``, whose part `n` is the `n`th entry from the oldest; an entry is ``StateParts``,
/// too.
struct DeviceKeyItem: Sendable {
    struct Entry: Sendable {
        /// ``DeviceKeys/name``.
        let name: String
        let storage: KeyStorage
        /// Nil if it is bound to presence, and so not stored in this item.
        let signing: WrappedKey?
        let agreement: WrappedKey
    }

    /// The oldest are removed, except the keys in use.
    static let mostEntries = 4

    private(set) var entries: [Entry] = []

    init() {}

    /// Nil if ``contents`` did not write `contents`. Leaves out entries of a later version with a storage
    /// that this one does not know.
    init?(_ contents: Secret) {
        guard let parts = StateParts(contents) else { return nil }
        for number in 1...UInt8(DeviceKeyItem.mostEntries) {
            guard let part = parts[number] else { continue }
            guard let entry = StateParts(part) else { return nil }
            if let entry = Entry(entry) { entries.append(entry) }
        }
    }

    var contents: Secret {
        var parts = StateParts()
        for (index, entry) in entries.enumerated() { parts[UInt8(index + 1)] = entry.contents }
        return parts.contents
    }

    subscript(name: String) -> Entry? { entries.first { $0.name == name } }

    /// Adds the entry as the newest. `keysInUse` are the session's: they stay, however old they are.
    mutating func add(_ entry: Entry, sparing keysInUse: String?) {
        entries.removeAll { $0.name == entry.name }
        while entries.count >= DeviceKeyItem.mostEntries,
            let oldest = entries.firstIndex(where: { $0.name != keysInUse })
        {
            entries.remove(at: oldest)
        }
        entries.append(entry)
    }
}

extension DeviceKeyItem.Entry {
    private enum Tag {
        static let (name, storage): (UInt8, UInt8) = (1, 2)
        static let (signingPoint, signing): (UInt8, UInt8) = (3, 4)
        static let (agreementPoint, agreement): (UInt8, UInt8) = (5, 6)
    }

    fileprivate init?(_ parts: StateParts) {
        guard let name = parts.text(Tag.name), let storage = parts.text(Tag.storage).flatMap(KeyStorage.init),
            let agreement = WrappedKey(parts, pointTag: Tag.agreementPoint, wrappedTag: Tag.agreement)
        else { return nil }
        self.init(
            name: name, storage: storage,
            signing: WrappedKey(parts, pointTag: Tag.signingPoint, wrappedTag: Tag.signing),
            agreement: agreement)
    }

    fileprivate var contents: Secret {
        var parts = StateParts()
        parts.set(Tag.name, to: name)
        parts.set(Tag.storage, to: storage.rawValue)
        parts.set(Tag.signingPoint, to: signing?.point.bytes)
        parts[Tag.signing] = signing?.wrapped
        parts.set(Tag.agreementPoint, to: agreement.point.bytes)
        parts[Tag.agreement] = agreement.wrapped
        return parts.contents
    }
}

extension WrappedKey {
    fileprivate init?(_ parts: StateParts, pointTag: UInt8, wrappedTag: UInt8) {
        guard let point = parts.bytes(pointTag).flatMap({ P256Point($0) }), let wrapped = parts[wrappedTag]
        else {
            return nil
        }
        self.init(point: point, wrapped: wrapped)
    }
}

extension DeviceKeyItem.Entry {
    /// As the state describes them.
    var keys: DeviceKeys? {
        guard let signing else { return nil }
        return DeviceKeys(
            signingPoint: signing.point, agreementPoint: agreement.point, storage: storage,
            isBoundToPresence: false)
    }
}
