import CountersignClient

extension CountersignClient {
    /// To be called at launch: signs in silently who was signed in last time, and says what to show.
    ///
    /// The session is confirmed by the authority, and renewed where its token has run out. Only the authority's own word ends it: of
    /// who is offline the session stands, and the state is ``CountersignState/active(_:)`` all the same. Where the device's key is bound to
    /// presence it is ``CountersignState/locked``, and ``unlock(_:)`` comes next (``CountersignOptions/gate``).
    @discardableResult
    public func resume() async -> CountersignState {
        do throws(CountersignError) {
            try await core.look()
            if core.standings.isSignedIn { try await confirmAtTheGate() }
        } catch {
            // What it means for the session is in the state; what else went wrong is in the events, and met again at the next call.
        }
        return state
    }

    /// Lets requests go out again after ``CountersignState/updateRequired(url:)``: for an app that goes on showing what it may still
    /// read. The next `update-required` pauses them again.
    public func continueDespiteUpdate() { core.standings.continueDespiteUpdate() }

    /// The switch "stay signed in". To ``CountersignOptions/Remembering/nothing`` the session goes on and ends with the process, and what
    /// was kept is removed; to ``CountersignOptions/Remembering/session`` it is kept from now on.
    public func remember(_ what: CountersignOptions.Remembering) async throws(CountersignError) {
        try await core.open()
        try await core.remember(what)
    }

    /// Asks the server one question and checks the answer's signature: for the first start of a new build, and for tests.
    ///
    /// Returns the seconds by which the device's clock is behind the server's. Throws ``CountersignError/refused(_:)`` where the
    /// server does not know the release key or its secret is wrong, ``CountersignError/notGenuine(_:)`` where its answer is
    /// signed with another authority key than the release key's, and ``CountersignError/misuse(_:)`` where the release key
    /// has no authority key. Source: docs/protocol.md, "Time".
    @discardableResult
    public func checkSetup() async throws(CountersignError) -> Int64 {
        try await core.step(nil) { (installation, way) async throws(ClientProblem) in
            try await AskTime(installation, way)()
        }
    }
}
