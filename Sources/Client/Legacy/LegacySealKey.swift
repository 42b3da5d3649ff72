import CountersignSeal
import CountersignVault
import CountersignWire

/// The key under which a legacy client's session is sealed in the vault, where it is kept so that it comes
/// out only with somebody present.
package struct LegacySealKey: Sendable {
    /// By which it is asked for: 32 hexadecimal digits, drawn with it.
    package let name: String
    /// 32 bytes.
    package let secret: Secret

    /// A new one.
    package init() {
        name = Hex.encode(SystemRandom().bytes(16).span)
        secret = MasterKey.random()
    }

    /// One that came out.
    package init(name: String, secret: Secret) {
        self.name = name
        self.secret = secret
    }

    fileprivate func binding(_ item: ItemName) -> SealBinding {
        SealBinding(kind: "legacy session", app: item.service, row: "\(item.account) \(name)")
    }
}

/// A session as it lies in the vault under a ``LegacySealKey``.
///
/// A layout byte (2; what is not sealed begins with 1, ``StateParts``), the length of the key's name (1
/// byte), the name, the box.
struct SealedKept {
    private static let layout: UInt8 = 2
    private static let longestName = 64

    let keyName: String
    private let box: [UInt8]

    /// Nil where the contents are not sealed. Throws where they begin like a sealed session and are none.
    init?(_ contents: Secret) throws(VaultProblem) {
        let bytes = contents.withExposedBytes { span in span.indices.map { span[$0] } }
        guard bytes.first == SealedKept.layout else { return nil }
        guard bytes.count > 2, (1...SealedKept.longestName).contains(Int(bytes[1])),
            bytes.count > 2 + Int(bytes[1]),
            let name = String(utf8: Array(bytes[2..<2 + Int(bytes[1])]))
        else { throw .failed("a sealed session is cut short") }
        keyName = name
        box = Array(bytes[(2 + Int(bytes[1]))...])
    }

    /// What goes into the vault.
    static func sealed(
        _ contents: Secret, under key: LegacySealKey, as item: ItemName
    ) throws(VaultProblem) -> Secret {
        let box = try master(key).seal(contents, as: key.binding(item))
        let bytes = [layout, UInt8(key.name.utf8.count)] + Array(key.name.utf8) + box
        return Secret(copying: bytes.span)
    }

    /// Nil where the key is another's. Throws where it is the right one, and the box was changed.
    func opened(by key: LegacySealKey?, as item: ItemName) throws(VaultProblem) -> Secret? {
        guard let key, key.name == keyName else { return nil }
        guard let contents = try? SealedKept.master(key).open(box, as: key.binding(item)) else {
            throw .failed("\(item): a sealed session does not open with its own key")
        }
        return contents
    }

    private static func master(_ key: LegacySealKey) throws(VaultProblem) -> MasterKey {
        guard let master = MasterKey(key.secret) else { throw .failed("a session's key: expected 32 bytes") }
        return master
    }
}
