import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A data folder, its store and its master key, opened together and checked to belong together.
package final class Deployment: Sendable {
    package let folder: DataFolder
    package let store: any Store
    package let generation: DeploymentGeneration
    let masterKey: MasterKey
    let auditChain: AuditChain
    let tombstones: AccountTombstoneKey
    /// Authenticates the rows; every connection to the store needs it.
    package let rows: RowAuthenticator
    /// The party that changes are recorded for.
    let actor: AuditActor
    let clock: any TimeSource
    let rootSealer: any SessionRootSealer

    /// Opens a deployment, or creates it at first use. A wrong master key is detected before anything is
    /// written.
    package init(
        folder: DataFolder, store: any Store, environment: [String: String], actor: AuditActor = .thisProcess,
        clock: any TimeSource = SystemTime(), rootSealer: any SessionRootSealer = MasterKeyRootSealer()
    ) throws(OperationalError) {
        let source = MasterKeySource(environment: environment, folder: folder)
        if let check = try store.value(of: .masterKeyCheck) {
            let found = try source.find()
            let opened = try Deployment.openCheck(check, with: found, folder: folder)
            try store.prepare()
            (masterKey, auditChain, rows) = try Deployment.ensureAuditLog(
                in: store, opened: opened, check: check, folder: folder)
        } else {
            let found = try source.findOrMake()
            try store.prepare()
            (masterKey, auditChain, rows) = try Deployment.ensureAuditLog(
                in: store, opened: MasterKeyCheck(key: found), check: nil, folder: folder)
        }
        tombstones = try AccountTombstoneKey(in: store, under: masterKey)
        self.actor = actor
        self.clock = clock
        self.rootSealer = rootSealer
        self.folder = folder
        self.store = store
        self.generation = try DeploymentGeneration(folder.generation)
        try store.authenticate(by: rows)
        if let check = try store.value(of: .masterKeyCheck) { try tagRowsOnce(after: check) }
        try rewriteAuditOnce()
    }

    private static func openCheck(
        _ check: [UInt8], with key: MasterKey?, folder: DataFolder
    ) throws(OperationalError) -> MasterKeyCheck {
        guard let key else {
            throw OperationalError(
                .failed,
                message: "master key: there is none, but the store was sealed with one; expected it in "
                    + "\(MasterKeySource.variable), a systemd credential or \(folder.masterKey)")
        }
        guard let opened = MasterKeyCheck(check, under: key) else {
            throw OperationalError(
                .failed, message: "master key: not the one this store was sealed with; nothing was changed")
        }
        return opened
    }

    /// Ensures that the store has an audit log: a new store's log begins here, and so does that of a store
    /// from a version without audit logs. `check` is the stored value that `opened` was read from; nil in
    /// a new store.
    private static func ensureAuditLog(
        in store: any Store, opened: MasterKeyCheck, check: [UInt8]?, folder: DataFolder
    ) throws(OperationalError) -> (MasterKey, AuditChain, RowAuthenticator) {
        if let auditKey = opened.auditKey { return try parts(of: opened.key, auditKey: auditKey) }
        let auditKey = Secret(random: AuditChain.keyCount)
        let now = try store.exchange(
            .masterKeyCheck, from: check, to: MasterKeyCheck.sealed(under: opened.key, auditKey: auditKey),
            with: [(.auditHead, AuditChain(key: auditKey).sealed(.empty))])
        // Of two processes that start at once one succeeds, and both use its key.
        guard let kept = try Deployment.openCheck(now, with: opened.key, folder: folder).auditKey else {
            throw OperationalError(
                .failed,
                message: "master key: its check was restored to an earlier one while the store was opened")
        }
        return try parts(of: opened.key, auditKey: kept)
    }

    private static func parts(
        of key: MasterKey, auditKey: Secret
    ) throws(OperationalError) -> (MasterKey, AuditChain, RowAuthenticator) {
        guard let rows = RowAuthenticator(key: auditKey) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        return (key, AuditChain(key: auditKey), rows)
    }

    func seal(_ secret: Secret, as binding: SealBinding) -> [UInt8] { masterKey.seal(secret, as: binding) }

    /// Nil if `sealed` was not sealed for this binding.
    func open(_ sealed: [UInt8], as binding: SealBinding) -> Secret? {
        try? masterKey.open(sealed, as: binding)
    }

    /// The Ed25519 seed that signs the authority's answers; created at first use.
    package func answerKey() throws(OperationalError) -> Secret {
        var sealed = try store.value(of: .answerKey)
        if sealed == nil {
            sealed = try store.setIfAbsent(
                .answerKey, to: seal(Secret(random: AnswerKey.seedCount), as: .answerKey))
        }
        do {
            return try masterKey.open(sealed ?? [], as: .answerKey)
        } catch {
            throw OperationalError(
                .failed, message: "answer key: its sealed value does not open; the row was altered")
        }
    }
}

extension SealBinding {
    static let answerKey = SealBinding(kind: "answer-key", row: "answer-key")

    static func policy(_ name: String, of app: AppName) -> SealBinding {
        SealBinding(kind: "policy", app: app.description, row: name)
    }
}

/// The value by which a wrong master key is detected: a fixed text sealed under the master key, followed by
/// the audit log's key.
///
/// They are one value so that the log cannot be made to look as if it had never begun: without the audit
/// log's key the deployment does not open.
struct MasterKeyCheck {
    let key: MasterKey
    /// Nil if the store is new, or from a version without audit logs.
    let auditKey: Secret?
    /// Whether the rows have tags: a store without this mark is from an earlier version, or new.
    let hasTaggedRows: Bool

    private static let text = Array("countersign".utf8)
    private static let place = SealBinding(kind: "master-key-check", row: "check")

    init(key: MasterKey) {
        self.key = key
        auditKey = nil
        hasTaggedRows = false
    }

    /// Nil if `sealed` was not sealed under that key.
    init?(_ sealed: [UInt8], under key: MasterKey) {
        guard let opened = try? key.open(sealed, as: MasterKeyCheck.place) else { return nil }
        self.key = key
        let count = MasterKeyCheck.text.count
        let end = count + AuditChain.keyCount
        hasTaggedRows = opened.count == end + 1
        auditKey = opened.count == end || hasTaggedRows ? opened.part(count..<end) : nil
    }

    /// `countersign ‖ audit key`, and one byte more once the rows have tags.
    static func sealed(under key: MasterKey, auditKey: Secret, hasTaggedRows: Bool = false) -> [UInt8] {
        let mark = Secret(copying: (hasTaggedRows ? [1] : [UInt8]()).span)
        return key.seal(Secret(joining: [auditKey.prefixed(by: "countersign"), mark]), as: place)
    }
}
