import CountersignSeal
import CountersignWire

/// The state where it is kept. Whoever changes it holds the lease from the reading to the writing, so that no change is lost.
struct KeptState: Sendable {
    let vault: any Vault

    /// An empty one where nothing is kept; a problem where it cannot be told.
    func read() throws(ClientProblem) -> ClientState {
        switch vault.read() {
        case .absent: return ClientState()
        case .unreadable(let problem): throw .vault(problem)
        case .value(let contents):
            guard let state = ClientState(contents) else {
                throw .vault(VaultProblem("the vault holds what this build cannot read"))
            }
            return state
        }
    }

    /// Durable once it returns.
    func write(_ state: ClientState) throws(ClientProblem) {
        do {
            try vault.write(state.vaultContents)
        } catch {
            throw .vault(error)
        }
    }

    nonisolated(nonsending) func lease() async throws(ClientProblem) -> any VaultLease {
        do {
            return try await vault.lease()
        } catch {
            throw .vault(error)
        }
    }

    /// Reads, changes and writes, by itself.
    nonisolated(nonsending) func change(_ body: (inout ClientState) -> Void) async throws(ClientProblem) {
        let lease = try await lease()
        defer { lease.release() }
        var state = try read()
        body(&state)
        try write(state)
    }

    /// Takes a session away that is over, whatever became of its tokens.
    nonisolated(nonsending) func forget(_ session: SessionID) async throws(ClientProblem) {
        try await change { state in if state.login?.id == session { state.login = nil } }
    }

    /// Takes the login away whose token was refused for good, and answers whether it is gone. An old bearer token is refused like
    /// that although its session lives: then the one that took its place stays.
    nonisolated(nonsending) func forget(usedWith token: SignedIn.Token) async throws(ClientProblem) -> Bool {
        var isGone = true
        try await change { state in
            guard let login = state.login else { return }
            isGone = login.isOver(with: token)
            if isGone { state.login = nil }
        }
        return isGone
    }
}
