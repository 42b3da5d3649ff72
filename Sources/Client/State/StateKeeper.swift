import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// A client's state: in memory for readers, in the vault for later processes. Each client has one.
///
/// Reading costs no disk access. A change is decided on the state that was read, and the vault accepts it
/// only if no other process has written since; otherwise the change is decided anew on the new state. So a
/// late refresh finds that its user has signed out, or that another user has signed in, and restores no one.
/// Changes of other processes are found at the next change, at a refresh, and by ``readVault()``.
package final class StateKeeper: Sendable {
    /// The time at the authority; for the life of the process.
    let clock = ServerClock()
    let refreshes = RefreshCoordinator()
    let pacer = RefreshPacer()
    let workspaces = SigningWorkspaces()
    package let logOuts = LogOutCoordinator()
    /// The private halves of the device's keys, which are not in the state.
    package let deviceKeys: DeviceKeyKeeper

    private let vault: Vault
    private let name: ItemName
    private let known = Locked<Kept?>(nil)
    /// One writer at a time, without blocking readers: a write takes as long as the disk does.
    private let writing = Locked<Void>(())
    private let announcer = StatusAnnouncer()

    /// How long to wait for another process's refresh: longer than all of its requests take.
    package static let patience = Duration.seconds(120)

    /// How often another writer may come first. More failures mean that the vault does not store what it is
    /// given.
    private static let mostRounds = 100

    /// A reference: each request looks at the state several times, and needs little of it.
    private final class Kept: Sendable {
        let state: PersistedState
        /// The vault's contents at that time.
        let found: Vault.Expectation

        init(state: PersistedState, found: Vault.Expectation) { (self.state, self.found) = (state, found) }
    }

    package init(_ vault: Vault, item name: ItemName, deviceKeys policy: DeviceKeyPolicy = .software) {
        self.vault = vault
        self.name = name
        deviceKeys = DeviceKeyKeeper(vault, besides: name, policy: policy)
    }

    /// The item of a client's state. The app's name separates two apps that share a vault. The release key's
    /// id is not part of it: each version of the app has another one, and an update must find the signed-in
    /// account.
    package static func item(host: String, app: String?) throws(ClientOperationError) -> ItemName {
        do {
            return try ItemName(service: "countersign \(host)", account: app ?? "app")
        } catch {
            throw ClientOperationError(error)
        }
    }

    /// As last known here.
    package func state() throws(ClientOperationError) -> PersistedState {
        if let known = known.with({ $0 }) { return known.state }
        return try readVault()
    }

    /// By how many seconds the device's clock was behind the authority's, as last known here.
    func clockOffset() throws(ClientOperationError) -> Int64 {
        if let known = known.with({ $0 }) { return known.state.clockOffset }
        return try readVault().clockOffset
    }

    /// Whether the server has yet to be told of a log-out, as last known here.
    var hasPendingLogOuts: Bool {
        if let known = known.with({ $0 }) { return !known.state.pendingLogOuts.isEmpty }
        return (try? readVault()).map { !$0.pendingLogOuts.isEmpty } ?? false
    }

    /// Reads the vault now. Empty if nothing is stored; throws if that cannot be determined.
    @discardableResult
    package func readVault() throws(ClientOperationError) -> PersistedState {
        try writing.with { (_) throws(ClientOperationError) in try read().state }
    }

    /// The result of a change, and whether it must be written.
    package enum Decision<Result: Sendable>: Sendable {
        case keep(Result)
        case write(Result)
    }

    /// Durable once it returns. Calls `decide` again with the new state if another writer came first.
    package func change<Result: Sendable>(
        _ decide: (inout PersistedState) throws(ClientOperationError) -> Decision<Result>
    ) throws(ClientOperationError) -> Result {
        try writing.with { (_) throws(ClientOperationError) in
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

    /// For an operation that spans several changes and that one process at a time may do. The state may have
    /// changed by the time the lease is granted.
    func lease() async throws(ClientOperationError) -> FileLock {
        do {
            return try await vault.lease(within: StateKeeper.patience)
        } catch {
            throw ClientOperationError(error)
        }
    }

    /// Calls `listener` with the status, now if it is known, and at each change. It must not wait, nor call
    /// back.
    package func announce(to listener: @escaping @Sendable (SessionStatus) -> Void) {
        announcer.add(listener)
    }

    /// Reports that a step failed for a reason outside the state.
    func announce(_ status: SessionStatus) { announcer.tell(status) }

    /// Reports the stored state's status once an obstacle is gone.
    func announceKnown() {
        if let known = known.with({ $0 }) { announcer.tell(SessionStatus(known.state)) }
    }

    private func read() throws(ClientOperationError) -> Kept {
        do throws(VaultError) {
            guard let item = try vault.read(name).get() else {
                return know(Kept(state: PersistedState(), found: .absent))
            }
            let found = Vault.Expectation.version(item.version)
            if let known = known.with({ $0 }), known.found == found { return know(known) }
            guard let state = PersistedState(item.contents.secret) else {
                throw .failed("\(name): holds what this build cannot read")
            }
            return know(Kept(state: state, found: found))
        } catch {
            let problem = ClientOperationError(error)
            announcer.tell(SessionStatus(problem))
            throw problem
        }
    }

    /// Returns false, and writes nothing, if another writer came first.
    private func write(_ state: PersistedState, over found: Vault.Expectation) throws(ClientOperationError)
        -> Bool
    {
        do {
            let version = try vault.write(.bytes(state.contents), to: name, expecting: found)
            _ = know(Kept(state: state, found: .version(version)))
            return true
        } catch .changed {
            return false
        } catch {
            throw ClientOperationError(error)
        }
    }

    private func know(_ kept: Kept) -> Kept {
        known.with { $0 = kept }
        announcer.tell(SessionStatus(kept.state))
        return kept
    }
}

extension StateKeeper {
    /// Removes a session that is over, whatever its tokens are by now.
    func forget(_ session: SessionID, ending: SessionEndRecord) throws(ClientOperationError) {
        try change { state in
            guard state.login?.id == session else { return .keep(()) }
            state.end(ending)
            return .write(())
        }
    }

    /// Removes the login whose token was refused for good, and returns its fate. The server refuses an old
    /// bearer token in this way although its session lives: then the token that replaced it stays.
    func forget(usedWith token: ActiveLogin.Token, ending: SessionEndRecord) throws(ClientOperationError)
        -> Login
    {
        try change { state in
            guard let login = state.login else { return .keep(.isGone) }
            guard login.isOver(with: token) else { return .keep(.isAnother) }
            state.end(ending)
            return .write(.isGone)
        }
    }

    enum Login: Sendable { case isGone, isAnother }
}

/// The authority's next key, once it is in use. Source: docs/protocol.md, "Keys that clients know".
extension StateKeeper {
    /// The keys that may sign the response to a request that is sent now: without the former one if this
    /// client has seen a response under the next one. Does not read the state of a client that knows no next
    /// key.
    func accepted(of keys: AuthorityKeys) throws(ClientOperationError) -> AuthorityKeys {
        guard let next = keys.next?.publicKey else { return keys }
        return try state().authorityKeyInUse == next.der ? keys.withoutFormer : keys
    }

    /// Stores that the authority signs with its next key. If the vault fails now, the next response proves
    /// the same; this response is not lost.
    func noteUse(of next: SigningKey?) {
        guard let key = next?.publicKey?.der else { return }
        try? change { state in
            guard state.authorityKeyInUse != key else { return .keep(()) }
            state.authorityKeyInUse = key
            return .write(())
        }
    }
}

extension StateKeeper {
    /// Removes the account that signed in last. Changes nothing while an account is signed in: the session
    /// names that account anyway.
    package func forgetLastAccount() throws(ClientOperationError) {
        try change { state in
            guard state.login == nil, state.lastAccount != nil else { return .keep(()) }
            state.lastAccount = nil
            return .write(())
        }
    }
}

extension StateKeeper {
    /// Writes the state that a login would leave, with a session that no server knows and that cannot be
    /// renewed: for tests of apps.
    package func makeUpSession(of account: AccountName, app: String?, expires: Int64)
        throws(ClientOperationError)
    {
        let random = SystemRandom()
        let bytes = random.bytes(SessionID.count)
        guard let id = SessionID(bytes.span), let name = Device.Name("made up") else {
            throw .machine("no session id")
        }
        let epoch = DeviceSession.Epoch(
            number: 0, root: SessionRoot(secret: random.secret(SessionRoot.count)), release: nil,
            expires: expires)
        let login = ActiveLogin(
            account: account, deviceClass: .other, deviceName: name, slots: "",
            session: .device(DeviceSession(id: id, current: epoch, idle: expires)))
        try change { state in
            state.app = app
            state.begin(login)
            return .write(())
        }
    }

    /// Writes the state that a login would leave, with the session that `open` opens for this device's keys:
    /// for a model of both ends.
    package func makeUpSession(
        of account: AccountName, app: String, release: KeyID, expires: Int64,
        opening open: (Device) throws(ClientOperationError) -> (id: SessionID, root: SessionRoot)
    ) throws(ClientOperationError) {
        guard let name = Device.Name("made up") else { throw .machine("no device name") }
        let keys = try deviceKeys.keysForLogin(preferring: nil)
        let (id, root) = try open(keys.device(class: .other, name: name))
        let epoch = DeviceSession.Epoch(number: 0, root: root, release: release, expires: expires)
        let login = ActiveLogin(
            account: account, deviceClass: .other, deviceName: name, slots: "",
            session: .device(DeviceSession(id: id, current: epoch, idle: expires)))
        try change { state in
            (state.app, state.keys) = (app, keys)
            state.begin(login)
            return .write(())
        }
    }

    /// Numbers the next transcript `distance` later, as a thief's client may: for a model of both ends.
    package func skipCounters(_ distance: Int64) throws(ClientOperationError) {
        try change { state in
            guard case .device(var session)? = state.login?.session else { return .keep(()) }
            session.skipCounters(distance)
            state.login?.session = .device(session)
            return .write(())
        }
    }
}
