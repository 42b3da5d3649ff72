import CountersignSeal
import CountersignVault
import CountersignWire

/// A client's state: in memory for whoever asks, in the vault for whoever comes after. One for each client.
///
/// To ask costs no look at the disk. A change is decided on what was read, and the vault takes it only where nobody has written since;
/// else it is decided anew on what is there now. So a refresh that comes late finds that its user has signed out, or that another
/// one is in his place, and brings nobody back. What another process wrote is found at the next change, at a refresh, and by
/// ``look()``.
package final class StateKeeper: Sendable {
    /// What time it is at the authority; for the life of the process.
    let clock = ServerClock()
    let refreshes = RefreshesUnderWay()
    /// The private halves of the device's keys, which are not in the state.
    package let deviceKeys: DeviceKeyKeeper

    private let vault: Vault
    private let name: ItemName
    private let known = Locked<Kept?>(nil)
    /// One writer at a time, without keeping up who only asks: a write takes as long as the disk does.
    private let writing = Locked<Void>(())
    private let announcer = Announcer()

    /// How long a refresh of another process is waited for: longer than all exchanges of one take.
    package static let patience = Duration.seconds(120)

    /// So often somebody else may be faster. More is a vault that does not keep what it is given.
    private static let mostRounds = 100

    private struct Kept {
        let state: ClientState
        /// What the vault held with it.
        let found: Vault.Expectation
    }

    package init(_ vault: Vault, _ name: ItemName, deviceKeys policy: DeviceKeyPolicy = .software) {
        self.vault = vault
        self.name = name
        deviceKeys = DeviceKeyKeeper(vault, besides: name, policy: policy)
    }

    /// Where a client keeps its state. The app's name tells two apps apart that share a vault. The release key's id does not come in:
    /// each version of the app has another one, and an update must find who is signed in.
    package static func item(host: String, app: String?) throws(ClientProblem) -> ItemName {
        do {
            return try ItemName(service: "countersign \(host)", account: app ?? "app")
        } catch {
            throw ClientProblem(error)
        }
    }

    /// As last known here.
    package func state() throws(ClientProblem) -> ClientState {
        if let known = known.with({ $0 }) { return known.state }
        return try look()
    }

    /// As the vault has it now. Empty where nothing is kept; a problem where that cannot be told.
    @discardableResult
    package func look() throws(ClientProblem) -> ClientState {
        try writing.with { (_) throws(ClientProblem) in try read().state }
    }

    /// What a change has come to, and whether there is anything to be written for it.
    package enum Decision<Result: Sendable>: Sendable {
        case keep(Result)
        case write(Result)
    }

    /// Durable once it returns. `decide` is asked again with another state where somebody else was faster.
    package func change<Result: Sendable>(
        _ decide: (inout ClientState) throws(ClientProblem) -> Decision<Result>
    ) throws(ClientProblem) -> Result {
        try writing.with { (_) throws(ClientProblem) in
            var kept = if let known = known.with({ $0 }) { known } else { try read() }
            for _ in 0..<StateKeeper.mostRounds {
                var state = kept.state
                switch try decide(&state) {
                case .keep(let result): return result
                case .write(let result):
                    if try write(state, over: kept.found) { return result }
                    kept = try read()
                }
            }
            throw .vaultFailed("\(name): written by others \(StateKeeper.mostRounds) times in a row")
        }
    }

    /// For what spans several changes, and must be done by one process at a time. It may all be different once the lease is had.
    nonisolated(nonsending) func lease() async throws(ClientProblem) -> FileLock {
        do {
            return try await vault.lease(within: StateKeeper.patience)
        } catch {
            throw ClientProblem(error)
        }
    }

    /// Tells `listener` how things stand, now if it is known, and whenever that changes. It must not wait, nor call back.
    package func announce(to listener: @escaping @Sendable (Standing) -> Void) { announcer.add(listener) }

    /// A step could not be taken for what is not the state's doing.
    func announce(_ standing: Standing) { announcer.tell(standing) }

    /// What was in the way is not any more.
    func announceKnown() {
        if let known = known.with({ $0 }) { announcer.tell(Standing(known.state)) }
    }

    private func read() throws(ClientProblem) -> Kept {
        do throws(VaultProblem) {
            for _ in 0..<StateKeeper.mostRounds {
                let reading = vault.read(name)
                guard let item = try reading.certain() else {
                    return know(Kept(state: ClientState(), found: .absent))
                }
                let found = Vault.Expectation.version(item.version)
                if let known = known.with({ $0 }), known.found == found { return know(known) }
                guard let state = ClientState(item.contents.secret) else {
                    throw VaultProblem.failed("\(name): holds what this build cannot read")
                }
                guard let keys = state.inlineKeys else { return know(Kept(state: state, found: found)) }
                if let moved = move(keys, of: state, found: found) { return moved }
            }
            throw .failed("\(name): written by others \(StateKeeper.mostRounds) times in a row")
        } catch {
            let problem = ClientProblem(error)
            announcer.tell(Standing(problem))
            throw problem
        }
    }

    /// Moves keys that an earlier version kept with the session into their own item. While the vault does not
    /// take that, they are used as they are, and moved with the next change. Nil where somebody else wrote
    /// before.
    private func move(
        _ keys: DeviceKeyItem.Entry, of state: ClientState, found: Vault.Expectation
    ) -> Kept? {
        deviceKeys.hold(keys)
        do throws(ClientProblem) {
            return try write(state, over: found) ? known.with { $0 } : nil
        } catch {
            return know(Kept(state: state, found: found))
        }
    }

    /// False where somebody else wrote before; then nothing was done.
    private func write(_ state: ClientState, over found: Vault.Expectation) throws(ClientProblem) -> Bool {
        var state = state
        do {
            if let keys = state.inlineKeys {
                try deviceKeys.store(keys, sparing: keys.name)
                state.inlineKeys = nil
            }
            let version = try vault.write(.bytes(state.contents), to: name, expecting: found)
            _ = know(Kept(state: state, found: .version(version)))
            return true
        } catch .changed {
            return false
        } catch {
            throw ClientProblem(error)
        }
    }

    private func know(_ kept: Kept) -> Kept {
        known.with { $0 = kept }
        announcer.tell(Standing(kept.state))
        return kept
    }
}

extension StateKeeper {
    /// Takes a session away that is over, whatever became of its tokens.
    func forget(_ session: SessionID, _ ending: Ending) throws(ClientProblem) {
        try change { state in
            guard state.login?.id == session else { return .keep(()) }
            state.end(ending)
            return .write(())
        }
    }

    /// Takes the login away whose token was refused for good, and answers what has become of it. An old bearer token is refused like
    /// that although its session lives: then the one that took its place stays.
    func forget(usedWith token: SignedIn.Token, _ ending: Ending) throws(ClientProblem) -> Login {
        try change { state in
            guard let login = state.login else { return .keep(.isGone) }
            guard login.isOver(with: token) else { return .keep(.isAnother) }
            state.end(ending)
            return .write(.isGone)
        }
    }

    enum Login: Sendable { case isGone, isAnother }
}
