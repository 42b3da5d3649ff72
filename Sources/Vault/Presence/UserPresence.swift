import CountersignSeal

/// How a person shows that he is there, and what comes out only then.
///
/// It is a secret that opens, not an answer `true` that somebody could turn round. There is no way that goes on without a person: who
/// has no finger enrolled is asked for the passcode or the password, and where there is none of those, nothing is kept.
public struct UserPresence: Sendable {
    private let means: any PresenceMeans

    package init(_ means: any PresenceMeans) { self.means = means }

    /// Keeps bytes so, in place of what was there; `reason` is shown to the person where he is asked. `present` once they are kept. Throws
    /// where the vault cannot keep them.
    public func setBytes(
        _ bytes: [UInt8], at name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Void> {
        try await means.bind(Secret(copying: bytes.span), to: name, in: vault, reason: reason)
    }

    /// The bytes, once the person has shown that he is there; `reason` is what he reads meanwhile. Throws where the vault cannot be read.
    /// What is given out is a copy that nobody wipes: for short use.
    public func bytes(
        _ name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<[UInt8]> {
        switch try await secret(name, in: vault, reason: reason) {
        case .present(let secret): .present(secret.withExposedBytes { span in span.indices.map { span[$0] } })
        case .notPresent(let step, let detail): .notPresent(step, detail)
        }
    }

    /// Nothing is left of it. Nobody is asked.
    public func remove(_ name: ItemName, in vault: Vault) async throws(VaultProblem) {
        try await means.forget(name, in: vault)
    }

    package func setSecret(
        _ secret: Secret, at name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Void> {
        try await means.bind(secret, to: name, in: vault, reason: reason)
    }

    package func secret(
        _ name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Secret> {
        try await means.release(name, from: vault, reason: reason)
    }
}

/// What came of asking somebody to show that he is there.
public enum PresenceAnswer<Value: Sendable>: Sendable {
    /// He is, and this came out.
    case present(Value)
    /// He is not: what to do now, and for people, why.
    case notPresent(PresenceStep, String)
}

/// What a machine has for it. Waits as long as a person takes.
package protocol PresenceMeans: Sendable {
    func bind(
        _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Void>

    func release(
        _ name: ItemName, from vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Secret>

    func forget(_ name: ItemName, in vault: Vault) async throws(VaultProblem)
}
