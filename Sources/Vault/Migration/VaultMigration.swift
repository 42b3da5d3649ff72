import CountersignSeal

/// Moves credentials of an older version into the vault. Each one is erased at its source only after the
/// vault has stored it durably and has returned it, so that a crash at any point loses nothing; the next run
/// continues.
public struct VaultMigration: Sendable {
    /// The result for each credential that was found.
    public struct Report: Sendable, Equatable {
        /// The vault has it now, and the source no longer does.
        public var moved: [ItemName] = []
        /// The vault had a newer item of that name; the old one was erased.
        public var superseded: [ItemName] = []
        /// Keys of what was erased without being kept.
        public var discarded: [String] = []
        /// Keys of what is still there, and why.
        public var left: [String: String] = [:]

        /// Of a source that had nothing.
        public init() {}
    }

    private let source: any RememberedCredentialSource
    private let vault: Vault

    /// Call it at each start; it costs little if nothing is left.
    public init(from source: any RememberedCredentialSource, into vault: Vault) {
        self.source = source
        self.vault = vault
    }

    /// Throws where the source cannot be read; what goes wrong with one thing is in the report.
    public func run() async throws(VaultError) -> Report {
        try await vault.queue.run { Result { () throws(VaultError) in try migrateAll() } }
    }

    func migrateAll() throws(VaultError) -> Report {
        var report = Report()
        for remembered in try source.read().get() ?? [] {
            do {
                try migrate(remembered, report: &report)
            } catch {
                report.left[remembered.key] = "\(error)"
            }
        }
        return report
    }

    private func migrate(_ remembered: RememberedCredential, report: inout Report) throws(VaultError) {
        switch remembered.fate {
        case .leave(let reason): report.left[remembered.key] = reason
        case .discard:
            try source.erase(remembered)
            report.discarded.append(remembered.key)
        case .move(let contents, let name):
            let isThere = try vault.read(name).get() != nil
            if !isThere {
                let version = try vault.write(contents, to: name, expecting: .absent)
                guard try vault.read(name).get()?.version == version else { throw .changed }
            }
            try source.erase(remembered)
            if isThere { report.superseded.append(name) } else { report.moved.append(name) }
        }
    }
}

/// A source of credentials that an older version of the program left. Only what it returns may be read and
/// erased. The calls may block their thread.
public protocol RememberedCredentialSource: Sendable {
    /// What is there, in the order in which it is to be moved.
    func read() -> VaultReadResult<[RememberedCredential]>

    /// Nothing is left of it there, durably.
    func erase(_ remembered: RememberedCredential) throws(VaultError)
}

/// One thing that was left.
public struct RememberedCredential: Sendable {
    /// What is to become of it.
    public enum Fate: Sendable {
        /// The vault keeps it, under this name.
        case move(ItemContents, to: ItemName)
        /// It must not be kept.
        case discard
        /// It cannot be moved as it is, and may still be needed; the text states the reason.
        case leave(String)
    }

    /// Where it is at the source: a key of UserDefaults, an account of a keychain's service.
    public let key: String
    /// What is to become of it.
    public let fate: Fate

    /// As the source found it.
    public init(key: String, fate: Fate) {
        self.key = key
        self.fate = fate
    }
}
