import CountersignWire

extension StateKeeper {
    /// Forgets who signed in last. Nothing changes while somebody is signed in: the session names that account anyway.
    package func forgetLastAccount() throws(ClientProblem) {
        try change { state in
            guard state.login == nil, state.lastAccount != nil else { return .keep(()) }
            state.lastAccount = nil
            return .write(())
        }
    }
}
