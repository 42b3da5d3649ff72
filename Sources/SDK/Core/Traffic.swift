import CountersignWire

extension ClientCore {
    /// Returns once a request may go out; throws where it may not.
    func admit(
        _ caller: APIRequest.Caller, _ owner: CallOwner, _ occasion: Manner.Occasion = .single
    ) async throws(CountersignError) {
        guard let obstacle = standings.obstacle(for: caller) else { return }
        try obstacle.check(occasion)
        switch (obstacle, options.whenPaused) {
        case (.endedSession, .fail): return
        case (.update, .fail), (.gate, .fail): throw obstacle.error
        case (_, .wait):
            try await wait(caller, caller == .account ? owner : CallOwner(), occasion, behind: obstacle)
        }
    }

    /// For what is no request of the app's, and waits for nobody.
    func passGate() async throws(CountersignError) {
        try await open()
        if let obstacle = standings.obstacle(for: .account), case .gate = obstacle { throw obstacle.error }
    }

    /// A request is in the name of who was signed in when it was made, and goes out in no other.
    private func wait(
        _ caller: APIRequest.Caller, _ owner: CallOwner, _ occasion: Manner.Occasion,
        behind first: Standings.Obstacle
    ) async throws(CountersignError) {
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
            try obstacle.check(occasion)
            awaited = awaited ?? obstacle.owner
            owner.settle(awaited)
        }
        throw .cancelled
    }
}

extension Standings.Obstacle {
    /// Whose request it is, where only he can clear the way.
    fileprivate var owner: AccountName? {
        switch self {
        case .update: nil
        // Always a name: it was one when he signed in.
        case .endedSession(of: let account, _), .gate(of: let account): try? AccountName(normalizing: account)
        }
    }

    fileprivate var error: CountersignError {
        switch self {
        case .update(let url): .updateRequired(url: url)
        case .endedSession(of: _, let end): .signedOut(end)
        case .gate: .presenceNeeded
        }
    }

    /// Nobody polls for a session that is over or an app that is not served, whatever brought the news.
    fileprivate func check(_ occasion: ClientCore.Manner.Occasion) throws(CountersignError) {
        switch (occasion, self) {
        case (.single, _), (.round, .gate): return
        case (.round, .update), (.round, .endedSession): throw error
        }
    }
}

extension CountersignState {
    fileprivate var isActive: Bool {
        if case .active = self { true } else { false }
    }
}
