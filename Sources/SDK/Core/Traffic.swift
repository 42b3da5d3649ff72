extension ClientCore {
    /// Returns once a request may go out; throws where it may not.
    func admit(_ caller: APIRequest.Caller) async throws(ClientError) {
        switch (standings.obstacle(for: caller), options.whenPaused) {
        case (nil, _), (.endedSession, .fail): return
        case (.update(let url), .fail): throw .updateRequired(url: url)
        case (let obstacle?, .wait): try await wait(caller, behind: obstacle)
        }
    }

    /// A request is in the name of who was signed in when it was made, and goes out in no other.
    private func wait(
        _ caller: APIRequest.Caller, behind first: Standings.Obstacle
    ) async throws(ClientError) {
        var owner = first.owner
        for await state in standings.stream() {
            if let owner, case .active(let account) = state, account.name != owner { throw .accountChanged }
            guard let obstacle = standings.obstacle(for: caller) else {
                guard owner == nil || state.isActive else { continue }
                return
            }
            owner = owner ?? obstacle.owner
        }
        throw .cancelled
    }
}

extension Standings.Obstacle {
    /// Whose request it is, where only he can clear the way.
    fileprivate var owner: String? {
        guard case .endedSession(let account) = self else { return nil }
        return account
    }
}

extension ClientState {
    fileprivate var isActive: Bool {
        if case .active = self { true } else { false }
    }
}
