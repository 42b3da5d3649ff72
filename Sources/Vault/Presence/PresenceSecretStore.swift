import CountersignSeal

/// Secrets in a vault that are released only when a person proves to be present: with a finger, or with the
/// password of the person's account.
///
/// A secret that the password opens cannot be opened by anything else on the machine, because the key is
/// stretched from the password. For a finger, a second copy of the key is under a key guard, which this
/// process opens after fprintd reports a match: a program that runs as the same user could open the guard
/// without a finger.
package struct PresenceSecretStore: Sendable {
    private let vault: Vault
    private let fingerprint: (any FingerprintReader)?
    private let password: any PasswordCheck
    private let fingerprintGuard: (any KeyGuard)?
    private let patience: Duration
    private let cost: PassphraseGuard.Cost

    /// Without a `fingerprintGuard` a finger opens nothing. `patience` is the time to wait for a finger;
    /// `cost` is the cost of one guess at the password for an attacker with the vault's contents.
    package init(
        _ vault: Vault, fingerprint: (any FingerprintReader)?, password: any PasswordCheck,
        fingerprintGuard: (any KeyGuard)?,
        patience: Duration = .seconds(20), cost: PassphraseGuard.Cost = .standard
    ) {
        self.vault = vault
        self.fingerprint = fingerprint
        self.password = password
        self.fingerprintGuard = fingerprintGuard
        self.patience = patience
        self.cost = cost
    }

    /// Stores the secret. The person enters the password once; nothing is stored if it is not given or wrong.
    package func bind(
        _ secret: Secret, to name: ItemName, ask: @escaping @Sendable () -> Secret?
    ) throws(VaultError) -> PresenceAnswer<Void> {
        switch password.verify(ask) {
        case .refused(let detail): return .notPresent(.retry, detail)
        case .givenUp: return .notPresent(.loginPage, "no password was given")
        case .unavailable(let detail): return .notPresent(.loginPage, detail)
        case .accepted(let typed):
            let box = try PresenceSealedSecret(
                secret, for: name, password: PassphraseGuard(cost, ask: { typed }),
                fingerprint: fingerprintGuard)
            try vault.write(.bytes(Secret(copying: box.bytes.span)), to: name)
            return .present(())
        }
    }

    /// The secret, or the step to take now. Throws if the vault cannot be read. Blocks its thread while it
    /// waits for the person.
    package func release(_ name: ItemName, ask: @escaping @Sendable () -> Secret?) throws(VaultError)
        -> PresenceAnswer<Secret>
    {
        guard let item = try vault.read(name).get() else {
            return .notPresent(.loginPage, "nothing is kept here")
        }
        let bytes = item.contents.secret.withExposedBytes { span in span.indices.map { span[$0] } }
        guard let box = PresenceSealedSecret(bytes, for: name) else {
            throw .failed("\(name): bound to no presence")
        }
        return openByFingerprint(box) ?? openByPassword(box, ask: ask)
    }

    /// Nil where only the password is left.
    private func openByFingerprint(_ box: PresenceSealedSecret) -> PresenceAnswer<Secret>? {
        guard let fingerprint, let fingerprintGuard, let held = box.underFingerprint else { return nil }
        switch fingerprint.verify(within: patience) {
        case .unavailable: return nil
        case .noMatch: return .notPresent(.retry, "the finger was not recognised")
        case .match:
            // A guard that was replaced, or a vault from another machine: the password still opens it.
            guard let key = try? fingerprintGuard.open(held), let secret = box.open(key) else { return nil }
            return .present(secret)
        }
    }

    private func openByPassword(_ box: PresenceSealedSecret, ask: @escaping @Sendable () -> Secret?)
        -> PresenceAnswer<Secret>
    {
        switch password.verify(ask) {
        case .refused(let detail): return .notPresent(.retry, detail)
        case .givenUp: return .notPresent(.loginPage, "no password was given")
        case .unavailable(let detail): return .notPresent(.loginPage, detail)
        case .accepted(let typed):
            guard let key = try? PassphraseGuard(ask: { typed }).open(box.underPassword),
                let secret = box.open(key)
            else {
                return .notPresent(.loginPage, "the machine's password has changed since")
            }
            return .present(secret)
        }
    }
}

/// A secret that opens only with a person present: sealed with a key of its own, which is stored twice, under
/// the person's password and, if a finger opens it too, under a key guard. There is no stored answer "is
/// present" that an attacker could change.
///
/// `1 ‖ length (2) ‖ key under the password ‖ length (2) ‖ key under the guard ‖ sealed secret`; a length of
/// 0 where there is no guard.
struct PresenceSealedSecret {
    private static let layout: UInt8 = 1

    let underPassword: [UInt8]
    /// Nil without a guard for fingerprints: a finger opens nothing then.
    let underFingerprint: [UInt8]?
    private let sealed: [UInt8]
    private let binding: SealBinding

    private static func binding(_ name: ItemName) -> SealBinding {
        SealBinding(kind: "presence", app: name.service, row: name.account)
    }

    init(_ secret: Secret, for name: ItemName, password: any KeyGuard, fingerprint: (any KeyGuard)?)
        throws(VaultError)
    {
        let key = MasterKey.random()
        guard let master = MasterKey(key) else { throw .failed("libsodium is not ready") }
        binding = PresenceSealedSecret.binding(name)
        underPassword = try password.seal(key)
        if let fingerprint { underFingerprint = try fingerprint.seal(key) } else { underFingerprint = nil }
        sealed = master.seal(secret, as: binding)
    }

    /// Nil where `bytes` were not written by ``bytes``.
    init?(_ bytes: [UInt8], for name: ItemName) {
        var rest = bytes.dropFirst()
        guard bytes.first == PresenceSealedSecret.layout, let password = PresenceSealedSecret.part(&rest),
            let fingerprint = PresenceSealedSecret.part(&rest)
        else { return nil }
        underPassword = password
        underFingerprint = fingerprint.isEmpty ? nil : fingerprint
        sealed = Array(rest)
        binding = PresenceSealedSecret.binding(name)
    }

    var bytes: [UInt8] {
        [PresenceSealedSecret.layout] + PresenceSealedSecret.counted(underPassword)
            + PresenceSealedSecret.counted(underFingerprint ?? []) + sealed
    }

    /// Nil if `key` is not the key of this secret.
    func open(_ key: Secret) -> Secret? {
        guard let master = MasterKey(key) else { return nil }
        return try? master.open(sealed, as: binding)
    }

    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    private static func part(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard rest.count >= 2 else { return nil }
        let count = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
