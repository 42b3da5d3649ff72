import CountersignSeal

/// A key under another key, which lies in a file of mode 0600. For machines that have nothing better.
///
/// It keeps out other users of the machine, and makes the sealed file alone, in a backup or a shared folder, worthless. It does not
/// keep out who can read both: whoever runs as the same user, or as root, or takes the whole disk.
package struct KeyFileGuard: KeyGuard {
    package let kind = KeyGuardKind.keyFile

    private static let binding = SealBinding(kind: "vault-key", row: "key-file")

    private let file: PrivateFile

    /// The file is made when something is sealed for the first time.
    package init(_ path: String) { file = PrivateFile(path: path) }

    package func seal(_ key: Secret) throws(VaultProblem) -> [UInt8] {
        if let known = try read() { return known.seal(key, as: KeyFileGuard.binding) }
        let fresh = MasterKey.random()
        guard let own = MasterKey(fresh) else { throw .failed("libsodium is not ready") }
        try file.replace(fresh.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } })
        return own.seal(key, as: KeyFileGuard.binding)
    }

    package func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
        guard let own = try read() else {
            throw .failed("\(file.path): gone; what it sealed cannot be opened without it")
        }
        do {
            return try own.open(sealed, as: KeyFileGuard.binding)
        } catch {
            throw .failed("\(file.path): is not the key that this was sealed with")
        }
    }

    /// Nil where there is certainly none yet.
    private func read() throws(VaultProblem) -> MasterKey? {
        guard var bytes = try file.read().certain() else { return nil }
        guard let key = MasterKey(Secret(taking: &bytes)) else {
            throw .failed("\(file.path): expected \(MasterKey.count) bytes")
        }
        return key
    }
}
