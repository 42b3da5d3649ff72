import CountersignSeal

/// Secrets in a vault that come out only when a person shows that he is there: with a finger, else with the password of his account.
///
/// What the password opens, nothing else on the machine opens, for the key is stretched from it. What the finger opens is held by the
/// TPM and given out by this process once fprintd has said yes: a program that runs as the same user could ask the TPM without it.
package struct PresenceBoxes: Sendable {
    private let vault: Vault
    private let fingerprint: (any FingerprintReader)?
    private let password: any PasswordCheck
    private let tpm: (any KeyGuard)?
    private let patience: Duration
    private let cost: PassphraseGuard.Cost

    /// `patience` is how long a finger is waited for; `cost` is that of one guess at the password for who has the vault's contents.
    package init(
        _ vault: Vault, fingerprint: (any FingerprintReader)?, password: any PasswordCheck, tpm: (any KeyGuard)?,
        patience: Duration = .seconds(20), cost: PassphraseGuard.Cost = .standard
    ) {
        self.vault = vault
        self.fingerprint = fingerprint
        self.password = password
        self.tpm = tpm
        self.patience = patience
        self.cost = cost
    }

    /// Keeps the secret so. The person says his password once; nothing is kept where he does not, or it is wrong.
    package func bind(
        _ secret: Secret, to name: ItemName, _ ask: @escaping @Sendable () -> Secret?
    ) throws(VaultProblem) -> PresenceAnswer<Void> {
        switch password.verify(ask) {
        case .refused(let detail): return .notPresent(.retry, detail)
        case .givenUp: return .notPresent(.loginPage, "no password was given")
        case .unavailable(let detail): return .notPresent(.loginPage, detail)
        case .accepted(let typed):
            let box = try PresenceBox(secret, for: name, password: PassphraseGuard(cost, ask: { typed }), tpm: tpm)
            try vault.write(.bytes(Secret(copying: box.bytes.span)), to: name)
            return .present(())
        }
    }

    /// The secret, or what to do now. Throws where the vault cannot be read. Blocks its thread while a person is waited for.
    package func release(_ name: ItemName, _ ask: @escaping @Sendable () -> Secret?) throws(VaultProblem)
        -> PresenceAnswer<Secret>
    {
        guard let item = try vault.read(name).certain() else { return .notPresent(.loginPage, "nothing is kept here") }
        let bytes = item.contents.secret.withExposedBytes { span in span.indices.map { span[$0] } }
        guard let box = PresenceBox(bytes, for: name) else { throw .failed("\(name): bound to no presence") }
        return byFinger(box) ?? byPassword(box, ask)
    }

    /// Nil where only the password is left.
    private func byFinger(_ box: PresenceBox) -> PresenceAnswer<Secret>? {
        guard let fingerprint, let tpm, let held = box.underTPM else { return nil }
        switch fingerprint.verify(within: patience) {
        case .unavailable: return nil
        case .noMatch: return .notPresent(.retry, "the finger was not recognised")
        case .match:
            // A TPM that was cleared, or a vault from another machine: the password still opens it.
            guard let key = try? tpm.open(held), let secret = box.open(key) else { return nil }
            return .present(secret)
        }
    }

    private func byPassword(_ box: PresenceBox, _ ask: @escaping @Sendable () -> Secret?) -> PresenceAnswer<Secret> {
        switch password.verify(ask) {
        case .refused(let detail): return .notPresent(.retry, detail)
        case .givenUp: return .notPresent(.loginPage, "no password was given")
        case .unavailable(let detail): return .notPresent(.loginPage, detail)
        case .accepted(let typed):
            guard let key = try? PassphraseGuard(ask: { typed }).open(box.underPassword), let secret = box.open(key)
            else {
                return .notPresent(.loginPage, "the machine's password has changed since")
            }
            return .present(secret)
        }
    }
}
