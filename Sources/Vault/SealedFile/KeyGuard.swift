import CountersignSeal

/// What keeps the 32-byte key of a sealed file. It gives back bytes that may lie about: they are worthless without the guard.
package protocol KeyGuard: Sendable {
    var kind: KeyGuardKind { get }

    /// What opens to `key` again, 65,535 bytes at most. Slow: up to a second.
    func seal(_ key: Secret) throws(VaultProblem) -> [UInt8]

    /// The key. ``VaultProblem/locked(_:)`` where the guard itself is closed, ``VaultProblem/failed(_:)`` where it cannot be reached or
    /// does not know the bytes. Slow: up to a second.
    func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret
}

/// Which guard sealed a file; a byte of its head.
package enum KeyGuardKind: UInt8, Sendable, CaseIterable {
    case tpm = 1
    case systemdCreds = 2
    case passphrase = 3
    case keyFile = 4

    package var name: String {
        switch self {
        case .tpm: "tpm"
        case .systemdCreds: "systemd-creds"
        case .passphrase: "passphrase"
        case .keyFile: "key-file"
        }
    }
}
