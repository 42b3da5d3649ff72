import CountersignSeal
import CountersignVault

/// The private halves of a device's keys as the vault has them: an item of its own, apart from the session's
/// root. In hardware they are wrapped and open nowhere else.
///
/// It holds several entries, since new keys are stored before the login that may replace the ones in use.
/// ``StateParts``, whose part `n` is the `n`th entry, from the oldest; an entry is ``StateParts``, too.
struct DeviceKeyItem: Sendable {
    struct Entry: Sendable {
        /// ``DeviceKeys/name``.
        let name: String
        let storage: KeyStorage
        /// Nil where it is bound to presence: then it is kept there and not here.
        let signing: WrappedKey?
        let agreement: WrappedKey
    }

    /// The oldest go, but for the keys in use.
    static let mostEntries = 4

    private(set) var entries: [Entry] = []

    init() {}

    /// Nil where `contents` are not what ``contents`` wrote. Entries of a later version, with a storage that
    /// this one does not know, are left out.
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

    /// Adds the entry as the newest. `keysInUse` are the session's: they stay however old they are.
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
            let agreement = WrappedKey(parts, Tag.agreementPoint, Tag.agreement)
        else { return nil }
        self.init(
            name: name, storage: storage,
            signing: WrappedKey(parts, Tag.signingPoint, Tag.signing), agreement: agreement)
    }

    fileprivate var contents: Secret {
        var parts = StateParts()
        parts.set(Tag.name, name)
        parts.set(Tag.storage, storage.rawValue)
        parts.set(Tag.signingPoint, signing?.point.bytes)
        parts[Tag.signing] = signing?.wrapped
        parts.set(Tag.agreementPoint, agreement.point.bytes)
        parts[Tag.agreement] = agreement.wrapped
        return parts.contents
    }
}

extension WrappedKey {
    fileprivate init?(_ parts: StateParts, _ pointTag: UInt8, _ wrappedTag: UInt8) {
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
