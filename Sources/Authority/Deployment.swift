import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A data folder, its store and its master key, opened together and known to belong together.
package final class Deployment: Sendable {
    package let folder: DataFolder
    package let store: any Store
    package let generation: Generation
    private let masterKey: MasterKey

    /// Opens, and at first use makes, a deployment. A master key that is not the one everything was sealed with is
    /// found before anything is written.
    package init(folder: DataFolder, store: any Store, environment: [String: String]) throws(Fault) {
        let source = MasterKeySource(environment: environment, folder: folder)
        if let check = try store.value(of: .masterKeyCheck) {
            masterKey = try Deployment.matching(check, source.find(), folder)
            try store.prepare()
        } else {
            let found = try source.findOrMake()
            try store.prepare()
            let check = try store.claim(
                .masterKeyCheck, found.seal(Secret(copying: [UInt8]("countersign".utf8).span), as: .masterKeyCheck))
            masterKey = try Deployment.matching(check, found, folder)
        }
        self.folder = folder
        self.store = store
        self.generation = try Generation(folder.generation)
    }

    private static func matching(_ check: [UInt8], _ key: MasterKey?, _ folder: DataFolder) throws(Fault) -> MasterKey {
        guard let key else {
            throw Fault(
                .failed,
                "master key: there is none, but the store was sealed with one; expected it in "
                    + "\(MasterKeySource.variable), a systemd credential or \(folder.masterKey)")
        }
        do {
            _ = try key.open(check, as: .masterKeyCheck)
        } catch {
            throw Fault(.failed, "master key: not the one this store was sealed with; nothing was changed")
        }
        return key
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
    static let masterKeyCheck = SealBinding(kind: "master-key-check", row: "check")
    static let answerKey = SealBinding(kind: "answer-key", row: "answer-key")

    static func policy(_ name: String, of app: AppName) -> SealBinding {
        SealBinding(kind: "policy", app: app.description, row: name)
    }
}
