import CountersignSeal

/// A key under a passphrase: stretched with Argon2id, under a salt of its own. Source: RFC 9106.
///
/// `1 ‖ memory in KiB (4) ‖ passes (4) ‖ salt (16) ‖ sealed key`, numbers big-endian. The cost stands in the bytes, so that it can
/// grow; what is read there is bounded, so that a forged file cannot take all memory.
package struct PassphraseGuard: KeyGuard {
    package let kind = KeyGuardKind.passphrase

    private static let layout: UInt8 = 1
    private static let head = 1 + 4 + 4 + Argon2id.saltCount
    private static let binding = SealBinding(kind: "vault-key", row: "passphrase")
    /// KiB; eight times what we use.
    private static let mostMemory = 512 * 1024
    private static let mostPasses = 16

    private let memory: Int
    private let passes: Int
    private let ask: @Sendable () -> Secret?

    /// `ask` is called when the passphrase is needed, nil where nobody can say it now. 64 MiB and three passes are RFC 9106's second
    /// recommended setting, with one lane.
    package init(memory: Int = 65_536, passes: Int = 3, ask: @escaping @Sendable () -> Secret?) {
        self.memory = memory
        self.passes = passes
        self.ask = ask
    }

    package func seal(_ key: Secret) throws(VaultProblem) -> [UInt8] {
        let salt = SystemRandom().bytes(Argon2id.saltCount)
        let stretched = try stretch(memory, passes, salt)
        return [PassphraseGuard.layout] + PassphraseGuard.bigEndian(memory) + PassphraseGuard.bigEndian(passes) + salt
            + stretched.seal(key, as: PassphraseGuard.binding)
    }

    package func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
        guard sealed.count > PassphraseGuard.head, sealed[0] == PassphraseGuard.layout else {
            throw .failed("not a key under a passphrase")
        }
        let memory = PassphraseGuard.number(sealed[1..<5])
        let passes = PassphraseGuard.number(sealed[5..<9])
        guard memory <= PassphraseGuard.mostMemory, passes <= PassphraseGuard.mostPasses else {
            throw .failed("a key under a passphrase that asks for \(memory) KiB and \(passes) passes")
        }
        let stretched = try stretch(memory, passes, Array(sealed[9..<PassphraseGuard.head]))
        let rest = Array(sealed[PassphraseGuard.head...])
        do {
            return try stretched.open(rest, as: PassphraseGuard.binding)
        } catch {
            // A wrong passphrase and altered bytes look alike; the first is what happens.
            throw .locked("the passphrase does not open it")
        }
    }

    private func stretch(_ memory: Int, _ passes: Int, _ salt: [UInt8]) throws(VaultProblem) -> MasterKey {
        guard let argon2id = Argon2id(memory: memory, passes: passes, lanes: 1, salt: salt) else {
            throw .failed("Argon2id with \(memory) KiB and \(passes) passes cannot be computed")
        }
        guard let passphrase = ask(), passphrase.count > 0 else { throw .locked("no passphrase was given") }
        let stretched: Secret
        do {
            stretched = try argon2id.hash(passphrase, count: MasterKey.count)
        } catch {
            throw .failed("Argon2id: \(memory) KiB of memory cannot be had")
        }
        guard let key = MasterKey(stretched) else { throw .failed("libsodium is not ready") }
        return key
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
