import CountersignClient

extension Client {
    /// To be called at launch: signs in silently who was signed in last time, and says what to show.
    ///
    /// The session is confirmed by the authority, and renewed where its token has run out. Only the authority's own word ends it: of
    /// who is offline the session stands, and the state is ``ClientState/active(_:)`` all the same. Where the device's key is bound to
    /// presence it is ``ClientState/locked``, and ``unlock(_:)`` comes next (``ClientOptions/gate``).
    @discardableResult
    public func resume() async -> ClientState {
        do throws(ClientError) {
            try await core.look()
            if core.standings.isSignedIn { try await confirmAtTheGate() }
        } catch {
            // What it means for the session is in the state; what else went wrong is in the events, and met again at the next call.
        }
        return state
    }

    /// Lets requests go out again after ``ClientState/updateRequired(url:)``: for an app that goes on showing what it may still
    /// read. The next `update-required` pauses them again.
    public func continueDespiteUpdate() { core.standings.continueDespiteUpdate() }

    /// The switch "stay signed in". To ``ClientOptions/Remembering/nothing`` the session goes on and ends with the process, and what
    /// was kept is removed; to ``ClientOptions/Remembering/session`` it is kept from now on.
    public func remember(_ what: ClientOptions.Remembering) async throws(ClientError) {
        try await core.open()
        try await core.remember(what)
    }
}
