import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A data folder, its store and its master key, opened together and known to belong together.
package final class Deployment: Sendable {
    package let folder: DataFolder
    package let store: any Store
    package let generation: Generation
    let masterKey: MasterKey
    let auditChain: AuditChain
    /// In whose name changes are recorded.
    let actor: AuditActor
    let clock: any TimeSource

    /// Opens, and at first use makes, a deployment. A master key that is not the one everything was sealed with is
    /// found before anything is written.
    package init(
        folder: DataFolder, store: any Store, environment: [String: String], actor: AuditActor = .thisProcess,
        clock: any TimeSource = SystemTime()
    ) throws(Fault) {
        let source = MasterKeySource(environment: environment, folder: folder)
        if let check = try store.value(of: .masterKeyCheck) {
            let found = try source.find()
            let opened = try Deployment.opened(check, found, folder)
            try store.prepare()
            (masterKey, auditChain) = try Deployment.begun(store, opened, check, folder)
        } else {
            let found = try source.findOrMake()
            try store.prepare()
            (masterKey, auditChain) = try Deployment.begun(store, MasterKeyCheck(key: found), nil, folder)
        }
        self.actor = actor
        self.clock = clock
        self.folder = folder
        self.store = store
        self.generation = try Generation(folder.generation)
    }

    private static func opened(
        _ check: [UInt8], _ key: MasterKey?, _ folder: DataFolder
    ) throws(Fault) -> MasterKeyCheck {
        guard let key else {
            throw Fault(
                .failed,
                "master key: there is none, but the store was sealed with one; expected it in "
                    + "\(MasterKeySource.variable), a systemd credential or \(folder.masterKey)")
        }
        guard let opened = MasterKeyCheck(check, under: key) else {
            throw Fault(.failed, "master key: not the one this store was sealed with; nothing was changed")
        }
        return opened
    }

    /// Makes sure that the store has an audit log: a new store's begins with it, and one from before there were such logs
    /// gets it now. `check` is what `opened` was read from; nil where the store has none yet.
    private static func begun(
        _ store: any Store, _ opened: MasterKeyCheck, _ check: [UInt8]?, _ folder: DataFolder
    ) throws(Fault) -> (MasterKey, AuditChain) {
        if let auditKey = opened.auditKey { return (opened.key, AuditChain(key: auditKey)) }
        let auditKey = Secret(random: AuditChain.keyCount)
        let now = try store.exchange(
            .masterKeyCheck, check, for: MasterKeyCheck.sealed(under: opened.key, auditKey: auditKey),
            with: [(.auditHead, AuditChain(key: auditKey).sealed(.empty))])
        // Of two that begin at once one wins, and both use its key.
        guard let kept = try Deployment.opened(now, opened.key, folder).auditKey else {
            throw Fault(.failed, "master key: its check was put back to an earlier one while the store was opened")
        }
        return (opened.key, AuditChain(key: kept))
    }

    func seal(_ secret: Secret, as binding: SealBinding) -> [UInt8] { masterKey.seal(secret, as: binding) }

    /// Nil where it was not sealed as that.
    func open(_ sealed: [UInt8], as binding: SealBinding) -> Secret? { try? masterKey.open(sealed, as: binding) }

    /// The Ed25519 seed that signs the authority's answers; made at first use.
    package func answerKey() throws(Fault) -> Secret {
        var sealed = try store.value(of: .answerKey)
        if sealed == nil {
            sealed = try store.claim(.answerKey, seal(Secret(random: AnswerKey.seedCount), as: .answerKey))
        }
        do {
            return try masterKey.open(sealed ?? [], as: .answerKey)
        } catch {
            throw Fault(.failed, "answer key: its sealed value does not open; the row was altered")
        }
    }
}

extension SealBinding {
    static let answerKey = SealBinding(kind: "answer-key", row: "answer-key")

    static func policy(_ name: String, of app: AppName) -> SealBinding {
        SealBinding(kind: "policy", app: app.description, row: name)
    }
}
