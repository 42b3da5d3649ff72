import CountersignSeal

/// A key under a passphrase: stretched with Argon2id, under a salt of its own. Source: RFC 9106.
///
/// `1 ‖ memory in KiB (4) ‖ passes (4) ‖ salt (16) ‖ sealed key`, numbers big-endian. The cost stands in the bytes, so that it can
/// grow; what is read there is bounded, so that a forged file cannot take all memory.
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

    /// `ask` is called when the passphrase is needed, and gives nil where nobody can say it now.
    package init(_ cost: Cost = .standard, ask: @escaping @Sendable () -> Secret?) {
        self.cost = cost
        self.ask = ask
    }

    package func seal(_ key: Secret) throws(VaultProblem) -> [UInt8] {
        let salt = SystemRandom().bytes(Argon2id.saltCount)
        let stretched = try stretch(cost, salt)
        return [PassphraseGuard.layout] + PassphraseGuard.bigEndian(cost.memory)
            + PassphraseGuard.bigEndian(cost.passes)
            + salt + stretched.seal(key, as: PassphraseGuard.binding)
    }

    package func open(_ sealed: [UInt8]) throws(VaultProblem) -> Secret {
        guard sealed.count > PassphraseGuard.head, sealed[0] == PassphraseGuard.layout else {
            throw .failed("not a key under a passphrase")
        }
        let cost = Cost(memory: PassphraseGuard.number(sealed[1..<5]), passes: PassphraseGuard.number(sealed[5..<9]))
        guard cost.memory <= PassphraseGuard.most.memory, cost.passes <= PassphraseGuard.most.passes else {
            throw .failed("a key under a passphrase that asks for \(cost.memory) KiB and \(cost.passes) passes")
        }
        let stretched = try stretch(cost, Array(sealed[9..<PassphraseGuard.head]))
        let rest = Array(sealed[PassphraseGuard.head...])
        do {
            return try stretched.open(rest, as: PassphraseGuard.binding)
        } catch {
            // A wrong passphrase and altered bytes look alike; the first is what happens.
            throw .locked("the passphrase does not open it")
        }
    }

    private func stretch(_ cost: Cost, _ salt: [UInt8]) throws(VaultProblem) -> MasterKey {
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
