import CountersignSeal

/// Protects the 32-byte key of a sealed file. It returns bytes that need no protection: they are worthless
/// without the guard.
package protocol KeyGuard: Sendable {
    var kind: KeyGuardKind { get }

    /// What opens to `key` again, 65,535 bytes at most. Slow: up to a second.
    func seal(_ key: Secret) throws(VaultError) -> [UInt8]

    /// The key. ``VaultError/locked(_:)`` where the guard itself is closed, ``VaultError/failed(_:)`` where
    /// it cannot be reached or does not know the bytes. Slow: up to a second.
    func open(_ sealed: [UInt8]) throws(VaultError) -> Secret
}

/// Which guard sealed a file; a byte of its head.
package enum KeyGuardKind: UInt8, Sendable, CaseIterable {
    case passphrase = 3
    case keyFile = 4

    package var name: String {
        switch self {
        case .passphrase: "passphrase"
        case .keyFile: "key-file"
        }
    }
}

/// A key under another key, which is in a file of mode 0600. For machines that have nothing better.
///
/// It keeps out other users of the machine, and makes the sealed file alone, in a backup or a shared folder,
/// worthless. It does not keep out an attacker with access to both files: a process of the same user or of
/// root, or a thief of the whole disk.
package struct KeyFileGuard: KeyGuard {
    package let kind = KeyGuardKind.keyFile

    private static let binding = SealBinding(kind: "vault-key", row: "key-file")

    private let file: PrivateFile

    /// The file is made when something is sealed for the first time.
    package init(_ path: String) { file = PrivateFile(path: path) }

    package func seal(_ key: Secret) throws(VaultError) -> [UInt8] {
        if let known = try read() { return known.seal(key, as: KeyFileGuard.binding) }
        let fresh = MasterKey.random()
        guard let own = MasterKey(fresh) else { throw .failed("libsodium is not ready") }
        try file.replace(fresh.withExposedBytes { bytes in bytes.indices.map { bytes[$0] } })
        return own.seal(key, as: KeyFileGuard.binding)
    }

    package func open(_ sealed: [UInt8]) throws(VaultError) -> Secret {
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
    private func read() throws(VaultError) -> MasterKey? {
        guard var bytes = try file.read().get() else { return nil }
        guard let key = MasterKey(Secret(taking: &bytes)) else {
            throw .failed("\(file.path): expected \(MasterKey.count) bytes")
        }
        return key
    }
}

/// A key under a passphrase: stretched with Argon2id, under a salt of its own. Source: RFC 9106.
///
/// `1 ‖ memory in KiB (4) ‖ passes (4) ‖ salt (16) ‖ sealed key`, numbers big-endian. The cost stands in the
/// bytes, so that it can grow; what is read there is bounded, so that a forged file cannot take all memory.
package struct PassphraseGuard: KeyGuard {
    /// What trying one passphrase costs: memory in KiB, and how often all of it is gone through.
    package struct Cost: Sendable {
        package var memory: Int
        package var passes: Int

        package init(memory: Int, passes: Int) {
            self.memory = memory
            self.passes = passes
        }

        /// RFC 9106's second recommended setting, with one lane.
        package static let standard = Cost(memory: 65_536, passes: 3)
    }

    package let kind = KeyGuardKind.passphrase

    private static let layout: UInt8 = 1
    private static let head = 1 + 4 + 4 + Argon2id.saltCount
    private static let binding = SealBinding(kind: "vault-key", row: "passphrase")
    private static let most = Cost(memory: 8 * 65_536, passes: 16)

    private let cost: Cost
    private let ask: @Sendable () -> Secret?

    /// `ask` is called when the passphrase is needed; it returns nil if the passphrase is not available now.
    package init(_ cost: Cost = .standard, ask: @escaping @Sendable () -> Secret?) {
        self.cost = cost
        self.ask = ask
    }

    package func seal(_ key: Secret) throws(VaultError) -> [UInt8] {
        let salt = SystemRandom().bytes(Argon2id.saltCount)
        let stretched = try stretch(cost: cost, salt: salt)
        return [PassphraseGuard.layout] + PassphraseGuard.bigEndian(cost.memory)
            + PassphraseGuard.bigEndian(cost.passes)
            + salt + stretched.seal(key, as: PassphraseGuard.binding)
    }

    package func open(_ sealed: [UInt8]) throws(VaultError) -> Secret {
        guard sealed.count > PassphraseGuard.head, sealed[0] == PassphraseGuard.layout else {
            throw .failed("not a key under a passphrase")
        }
        let cost = Cost(
            memory: PassphraseGuard.number(sealed[1..<5]), passes: PassphraseGuard.number(sealed[5..<9]))
        guard cost.memory <= PassphraseGuard.most.memory, cost.passes <= PassphraseGuard.most.passes else {
            throw .failed(
                "a key under a passphrase that asks for \(cost.memory) KiB and \(cost.passes) passes")
        }
        let stretched = try stretch(cost: cost, salt: Array(sealed[9..<PassphraseGuard.head]))
        let rest = Array(sealed[PassphraseGuard.head...])
        do {
            return try stretched.open(rest, as: PassphraseGuard.binding)
        } catch {
            // A wrong passphrase and altered bytes look alike; the first is what happens.
            throw .locked("the passphrase does not open it")
        }
    }

    private func stretch(cost: Cost, salt: [UInt8]) throws(VaultError) -> MasterKey {
        guard let argon2id = Argon2id(memory: cost.memory, passes: cost.passes, lanes: 1, salt: salt) else {
            throw .failed("Argon2id with \(cost.memory) KiB and \(cost.passes) passes cannot be computed")
        }
        guard let passphrase = ask(), passphrase.count > 0 else { throw .locked("no passphrase was given") }
        let stretched: Secret
        do {
            stretched = try argon2id.hash(passphrase, count: MasterKey.count)
        } catch {
            throw .failed("Argon2id: \(cost.memory) KiB of memory cannot be had")
        }
        guard let key = MasterKey(stretched) else { throw .failed("libsodium is not ready") }
        return key
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
