import CountersignClient
import CountersignSeal
import CountersignTrust
import CountersignVault
import CountersignWire

/// Simulates a person that confirms or denies user presence, as a test scripts it. The secrets
/// stay in memory and are released only on confirmation.
public final class ScriptedPerson: Sendable {
    private struct State {
        var secrets: [ItemName: Secret] = [:]
        var steps: [PresenceStep] = []
        var reasons: [String] = []
    }

    private let state = Locked(State())

    /// Makes a person that confirms every request until a call of ``refuse(_:)``.
    public init() {}

    /// The presence check for the code under test.
    public var presence: UserPresence { UserPresence(ScriptedPresence(person: self)) }

    /// Makes the next requests for presence fail, one after the other with these outcomes.
    public func refuse(_ steps: PresenceStep...) { state.with { $0.steps += steps } }

    /// The reason of each request for presence, in order.
    public var reasons: [String] { state.with { $0.reasons } }

    /// The names of the secrets that are kept.
    public var names: [ItemName] { state.with { $0.secrets.keys.sorted() } }

    fileprivate func ask<Value>(
        _ reason: String, body: (inout [ItemName: Secret]) -> PresenceAnswer<Value>
    ) -> PresenceAnswer<Value> {
        state.with { state in
            state.reasons.append(reason)
            guard state.steps.isEmpty else {
                return .notPresent(state.steps.removeFirst(), "as the test wants it")
            }
            return body(&state.secrets)
        }
    }

    fileprivate func forget(_ name: ItemName) { state.with { $0.secrets[name] = nil } }
}

private struct ScriptedPresence: PresenceProvider {
    let person: ScriptedPerson

    func bind(
        _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Void> {
        person.ask(reason) { secrets in
            secrets[name] = secret
            return .present(())
        }
    }

    func release(
        _ name: ItemName, from vault: Vault, reason: String
    ) async throws(VaultError) -> PresenceAnswer<Secret> {
        person.ask(reason) {
            $0[name].map { .present($0) } ?? .notPresent(.loginPage, "nothing is kept here")
        }
    }

    func forget(_ name: ItemName, in vault: Vault) async throws(VaultError) { person.forget(name) }
}

extension Vault {
    /// Stores the state that a login leaves, so that a client over this vault is signed in and signs its
    /// requests: for tests over a ``MockTransport``. No server knows the session, the client cannot renew
    /// it, and operations that need a response signed by the authority fail as with a forged response.
    ///
    /// `host` is the client's host, with its port if that is not the default; `app` is the app of its
    /// release key. `until` is in whole Unix seconds.
    public func pretend(
        _ account: String, isSignedInTo host: String, app: String? = nil, until: Int64 = .max
    ) throws {
        let keeper = StateKeeper(self, item: try StateKeeper.item(host: host, app: app))
        try keeper.makeUpSession(of: AccountName(normalizing: account), app: app, expires: until)
    }
}
