import CountersignSeal

/// What tells the right master key from a wrong one: a fixed text under it, and behind that the audit log's key.
///
/// They are one value so that the log cannot be made to look as if it had never begun: who takes the key away takes the
/// deployment away.
struct MasterKeyCheck {
    let key: MasterKey
    /// Nil where the store is new, or was made before there were audit logs.
    let auditKey: Secret?

    private static let text = Array("countersign".utf8)
    private static let place = SealBinding(kind: "master-key-check", row: "check")

    init(key: MasterKey) {
        self.key = key
        auditKey = nil
    }

    /// Nil where `sealed` was not sealed under that key.
    init?(_ sealed: [UInt8], under key: MasterKey) {
        guard let opened = try? key.open(sealed, as: MasterKeyCheck.place) else { return nil }
        self.key = key
        let count = MasterKeyCheck.text.count
        auditKey =
            opened.count == count + AuditChain.keyCount
            ? opened.withExposedBytes { Secret(copying: $0.extracting(count...)) } : nil
    }

    static func sealed(under key: MasterKey, auditKey: Secret) -> [UInt8] {
        key.seal(auditKey.prefixed(by: "countersign"), as: place)
    }
}
