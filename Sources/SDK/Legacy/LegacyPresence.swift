import CountersignClient
import CountersignSeal
import CountersignVault

/// The keys of a legacy client's sessions where they come out only with somebody present.
struct LegacyPresence: Sendable {
    let presence: UserPresence
    let vault: Vault
    /// Apart from the session's item: these are sealed to a person.
    let service: String

    func bind(_ key: LegacySealKey, reason: String) async throws(CountersignError) {
        let answer: PresenceAnswer<Void>
        do throws(VaultProblem) {
            answer = try await presence.setSecret(
                key.secret, at: try place(key.name), in: vault, reason: reason)
        } catch {
            throw CountersignError(error)
        }
        if case .notPresent(let step, _) = answer { throw .notPresent(step) }
    }

    func release(_ name: String, reason: String) async throws(CountersignError) -> LegacySealKey {
        let answer: PresenceAnswer<Secret>
        do throws(VaultProblem) {
            answer = try await presence.secret(try place(name), in: vault, reason: reason)
        } catch {
            throw CountersignError(error)
        }
        switch answer {
        case .present(let secret): return LegacySealKey(name: name, secret: secret)
        case .notPresent(let step, _): throw .notPresent(step)
        }
    }

    /// What is left opens nothing: a key without what it seals.
    func remove(_ name: String) async {
        guard let place = try? place(name) else { return }
        try? await presence.remove(place, in: vault)
    }

    private func place(_ name: String) throws(VaultProblem) -> ItemName {
        try ItemName(service: service, account: name)
    }
}
