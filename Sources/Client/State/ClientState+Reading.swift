extension ClientState {
    /// What is kept in a vault; empty where nothing is.
    package static func read(_ vault: any Vault) throws(ClientProblem) -> ClientState {
        try KeptState(vault: vault).read()
    }
}
