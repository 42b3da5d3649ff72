import CountersignSeal
import CountersignVault
import CountersignWire

/// The key that seals a legacy client's session in the vault, if the session must leave it only when the user
/// is present.
package struct LegacySealKey: Sendable {
    /// The name under which the key is requested: 32 hexadecimal digits, drawn with the key.
    package let name: String
    /// 32 bytes.
    package let secret: Secret

    /// A new one.
    package init() {
        name = Hex.encode(SystemRandom().bytes(16).span)
        secret = MasterKey.random()
    }

    /// A key that presence has released.
    package init(name: String, secret: Secret) {
        self.name = name
        self.secret = secret
    }

    fileprivate func binding(_ item: ItemName) -> SealBinding {
        SealBinding(kind: "legacy session", app: item.service, row: "\(item.account) \(name)")
    }
}

/// A session as the vault stores it under a ``LegacySealKey``.
///
/// A layout byte (2; contents without a seal begin with 1, ``StateParts``), the length of the key's name (1
/// byte), the name, the box.
struct SealedLegacySession {
    private static let layout: UInt8 = 2
    private static let longestName = 64

    let keyName: String
    private let box: [UInt8]

    /// Nil if the contents are not sealed. Throws if they begin like a sealed session and are not one.
    init?(_ contents: Secret) throws(VaultError) {
        let bytes = contents.withExposedBytes { span in span.indices.map { span[$0] } }
        guard bytes.first == SealedLegacySession.layout else { return nil }
        guard bytes.count > 2, (1...SealedLegacySession.longestName).contains(Int(bytes[1])),
            bytes.count > 2 + Int(bytes[1]),
            let name = String(utf8: Array(bytes[2..<2 + Int(bytes[1])]))
        else { throw .failed("a sealed session is cut short") }
        keyName = name
        box = Array(bytes[(2 + Int(bytes[1]))...])
    }

    /// The contents for the vault.
    static func sealed(
        _ contents: Secret, under key: LegacySealKey, as item: ItemName
    ) throws(VaultError) -> Secret {
        let box = try master(key).seal(contents, as: key.binding(item))
        let bytes = [layout, UInt8(key.name.utf8.count)] + Array(key.name.utf8) + box
        return Secret(copying: bytes.span)
    }

    /// Nil if another key seals it. Throws if the key is right and the box was changed.
    func opened(by key: LegacySealKey?, as item: ItemName) throws(VaultError) -> Secret? {
        guard let key, key.name == keyName else { return nil }
        guard let contents = try? SealedLegacySession.master(key).open(box, as: key.binding(item)) else {
            throw .failed("\(item): a sealed session does not open with its own key")
        }
        return contents
    }

    private static func master(_ key: LegacySealKey) throws(VaultError) -> MasterKey {
        guard let master = MasterKey(key.secret) else { throw .failed("a session's key: expected 32 bytes") }
        return master
    }
}

extension LegacyAccount {
    /// What the user's presence is needed for.
    package enum Lock: Sendable, Equatable {
        /// Nothing: no session is sealed, or its key is here.
        case open
        /// To open the session, with the key of that name.
        case closed(String)
    }

    /// As last known here.
    package func lock() throws(ClientOperationError) -> Lock { lock(of: try known()) }

    /// As the vault has it now.
    package func lockNow() throws(ClientOperationError) -> Lock { lock(of: try readVault()) }

    /// Whether the session was opened with the key of that name.
    package func isOpen(with name: String) -> Bool { sealKey?.name == name }

    /// The name of the key that seals the stored session; nil if none does.
    package func keyName() throws(ClientOperationError) -> String? {
        switch try readVault().form {
        case .plain: nil
        case .sealed: sealKey?.name
        case .locked(let name): name
        }
    }

    /// Opens the session and adopts it as ``resume()`` does, except that a stop stays. Returns false if
    /// another key seals it by now.
    package func unlock(with key: LegacySealKey) async throws(ClientOperationError) -> Bool {
        sealKey = key
        guard lock(of: try readVault()) == .open else { return false }
        _ = try await restoreLogin()
        return true
    }

    /// A key for the next login's session that has yet to be bound to presence; nil if there is a usable one.
    package func keyToBind() throws(ClientOperationError) -> LegacySealKey? {
        if nextKey != nil { return nil }
        return try readVault().form == .sealed ? nil : LegacySealKey()
    }

    /// Seals the sessions of later logins under `key`.
    package func sealNext(under key: LegacySealKey) { nextKey = key }

    private func lock(of found: LegacyStore.Found) -> Lock {
        guard isLocked(found), case .locked(let name) = found.form else { return .open }
        return .closed(name)
    }
}

extension LegacyAccount {
    /// Whether nothing is stored here, sealed or not.
    package func isEmpty() throws(ClientOperationError) -> Bool { try readVault().version == nil }
}
