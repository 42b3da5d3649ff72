import CountersignSeal

/// A vault in two files of mode 0600: what is kept, sealed, and the key that it is sealed with.
///
/// It keeps out other users of the machine, and makes one file alone, in a backup or a shared folder, worthless. It does not keep
/// out who can read both: whoever runs as the same user, or as root, or takes the whole disk. A key that the machine guards
/// itself is another vault's work.
package struct SealedFile: Vault {
    private let file: PrivateFile
    private let keyFile: PrivateFile
    private let lockPath: String
    /// Seconds to wait for another holder: longer than all exchanges of one refresh take.
    private let patience: Int

    package static let standardPatience = 120

    private static let binding = SealBinding(kind: "client-vault", row: "vault")

    /// `path` is the sealed file's; its key is beside it in `PATH.key`, its lock in `PATH.lock`.
    package init(_ path: String, patience: Int = SealedFile.standardPatience) {
        file = PrivateFile(path: path)
        keyFile = PrivateFile(path: "\(path).key")
        lockPath = "\(path).lock"
        self.patience = patience
    }

    package func read() -> VaultReading {
        let sealed: Secret
        switch file.read() {
        case .absent: return .absent
        case .unreadable(let problem): return .unreadable(problem)
        case .value(let contents): sealed = contents
        }
        let key: MasterKey
        switch keyFile.read() {
        case .absent:
            return .unreadable(VaultProblem("\(keyFile.path): gone; \(file.path) cannot be opened without it"))
        case .unreadable(let problem): return .unreadable(problem)
        case .value(let text):
            guard let found = MasterKey(text) else {
                return .unreadable(VaultProblem("\(keyFile.path): expected \(MasterKey.count) bytes"))
            }
            key = found
        }
        let bytes = sealed.withExposedBytes { span in span.indices.map { span[$0] } }
        guard let contents = try? key.open(bytes, as: SealedFile.binding) else {
            return .unreadable(VaultProblem("\(file.path): does not open: altered, or sealed with another key"))
        }
        return .value(contents)
    }

    package func write(_ contents: Secret) throws(VaultProblem) {
        let sealed = try key().seal(contents, as: SealedFile.binding)
        try file.replace(Secret(copying: sealed.span))
    }

    package func erase() throws(VaultProblem) {
        try file.remove()
        try keyFile.remove()
    }

    nonisolated(nonsending) package func lease() async throws(VaultProblem) -> any VaultLease {
        try await FileLease.take(lockPath, patience: patience)
    }

    /// The key; made at the first write.
    private func key() throws(VaultProblem) -> MasterKey {
        var reading = keyFile.read()
        if case .absent = reading {
            try keyFile.make(MasterKey.random())
            reading = keyFile.read()
        }
        switch reading {
        case .value(let text):
            guard let key = MasterKey(text) else {
                throw VaultProblem("\(keyFile.path): expected \(MasterKey.count) bytes")
            }
            return key
        case .unreadable(let problem): throw problem
        case .absent: throw VaultProblem("\(keyFile.path): gone as soon as it was made")
        }
    }
}
