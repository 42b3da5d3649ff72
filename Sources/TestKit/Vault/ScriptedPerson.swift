import CountersignSeal
import CountersignTrust
import CountersignVault

/// Somebody who shows that he is there, or does not, as a test says. Secrets are kept in memory, and come out only when he does.
public final class ScriptedPerson: Sendable {
    private struct State {
        var secrets: [ItemName: Secret] = [:]
        var steps: [PresenceStep] = []
        var reasons: [String] = []
    }

    private let state = Locked(State())

    /// He is there, until told otherwise.
    public init() {}

    /// What the code under test is given.
    public var presence: UserPresence { UserPresence(ScriptedPresence(person: self)) }

    /// The next times that he is asked he does not show it, and this is what comes of it.
    public func refuse(_ steps: PresenceStep...) { state.with { $0.steps += steps } }

    /// Why he was asked, each time.
    public var reasons: [String] { state.with { $0.reasons } }

    /// What is kept for him.
    public var names: [ItemName] { state.with { $0.secrets.keys.sorted() } }

    fileprivate func ask<Value>(
        _ reason: String, _ body: (inout [ItemName: Secret]) -> PresenceAnswer<Value>
    ) -> PresenceAnswer<Value> {
        state.with { state in
            state.reasons.append(reason)
            guard state.steps.isEmpty else { return .notPresent(state.steps.removeFirst(), "as the test wants it") }
            return body(&state.secrets)
        }
    }

    fileprivate func forget(_ name: ItemName) { state.with { $0.secrets[name] = nil } }
}

private struct ScriptedPresence: PresenceMeans {
    let person: ScriptedPerson

    func bind(
        _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Void> {
        person.ask(reason) { secrets in
            secrets[name] = secret
            return .present(())
        }
    }

    func release(
        _ name: ItemName, from vault: Vault, reason: String
    ) async throws(VaultProblem) -> PresenceAnswer<Secret> {
        person.ask(reason) { $0[name].map { .present($0) } ?? .notPresent(.loginPage, "nothing is kept here") }
    }

    func forget(_ name: ItemName, in vault: Vault) async throws(VaultProblem) { person.forget(name) }
}
