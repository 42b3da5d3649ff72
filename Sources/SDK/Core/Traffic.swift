import CountersignWire

extension ClientCore {
    /// Returns once a request may go out; throws where it may not.
    func admit(_ caller: APIRequest.Caller, _ owner: CallOwner) async throws(ClientError) {
        switch (standings.obstacle(for: caller), options.whenPaused) {
        case (nil, _), (.endedSession, .fail): return
        case (.update(let url), .fail): throw .updateRequired(url: url)
        case (let obstacle?, .wait): try await wait(caller, caller == .account ? owner : CallOwner(), behind: obstacle)
        }
    }

    /// A request is in the name of who was signed in when it was made, and goes out in no other.
    private func wait(
        _ caller: APIRequest.Caller, _ owner: CallOwner, behind first: Standings.Obstacle
    ) async throws(ClientError) {
        var awaited = first.owner
        owner.settle(awaited)
        for await state in standings.stream() {
            if let owner = owner.account, case .active(let account) = state, account.name != owner.description {
                throw .accountChanged
            }
            guard let obstacle = standings.obstacle(for: caller) else {
                guard awaited == nil || state.isActive else { continue }
                return
            }
            awaited = awaited ?? obstacle.owner
            owner.settle(awaited)
        }
        throw .cancelled
    }
}

extension Standings.Obstacle {
    /// Whose request it is, where only he can clear the way.
    fileprivate var owner: AccountName? {
        guard case .endedSession(let account) = self else { return nil }
        // Always a name: it was one when he signed in.
        return try? AccountName(normalizing: account)
    }
}

extension ClientState {
    fileprivate var isActive: Bool {
        if case .active = self { true } else { false }
    }
}
