import CountersignClient

extension LegacyClient {
    /// The text of the prompt when a login binds its session's key to presence.
    static let reason = "Sign in"

    /// Passes the gate after ``resume()``: asks the user to confirm their presence, opens the session with
    /// the released key, and renews its token if that has expired. If the device is offline, presence alone
    /// is enough. The system shows `reason` in its prompt.
    ///
    /// Until then this process does not know the session's tokens: the vault stores them sealed, and a copy
    /// of the vault does not open without the person. From then on they are in its memory until it ends or
    /// the user signs out. These protocols have no device key: a party that has read a token elsewhere, on
    /// the path or at the server, uses it without any gate. Does nothing if the session is open; throws
    /// ``CountersignError/notPresent(_:)`` if the user does not confirm their presence, and
    /// ``CountersignError/notSignedIn`` if no account is signed in.
    public func unlock(_ reason: String) async throws(CountersignError) {
        guard let presence else { throw .misuse("presence: LegacyOptions.gate is `none`") }
        let lock = try await run { (account) async throws(ClientOperationError) in
            try await account.lockNow()
        }
        guard case .closed(let name) = lock else {
            if await calls.owner() == nil { throw .notSignedIn }
            return
        }
        do throws(CountersignError) {
            try await run { (account) async throws(ClientOperationError) in
                let key = LegacySealKey(
                    name: name, secret: try await presence.secret(named: name, reason: reason))
                guard try await account.unlock(with: key) else { throw .presenceNeeded }
            }
        } catch {
            guard case .transport = error else { throw error }
        }
    }

    /// Returns once a request may go out; throws where it may not.
    func admit(_ caller: APIRequest.Caller) async throws(CountersignError) {
        guard caller == .account, presence != nil else { return }
        guard case .closed(let name) = try await lock() else { return }
        guard options.whenLocked == .wait else { throw .presenceNeeded }
        for await _ in report.states {
            guard try await lock() == .open else { continue }
            // Another account has signed in instead of the awaited one.
            guard await account.isOpen(with: name) else { throw .accountChanged }
            return
        }
        throw .cancelled
    }

    private func lock() async throws(CountersignError) -> LegacyAccount.Lock {
        try await run { (account) async throws(ClientOperationError) in try await account.lock() }
    }

    /// Runs an operation that begins a session. Binds the session's key to presence first if the gate asks
    /// for that: a session that no user could open again would be useless.
    func keeping(
        _ step: @Sendable (LegacyAccount) async throws(ClientOperationError) -> Void
    ) async throws(CountersignError) {
        try await run { (account) async throws(ClientOperationError) in
            guard let presence else { return try await step(account) }
            let former = try await account.keyName()
            if let key = try await account.keyToBind() {
                try await presence.set(key.secret, named: key.name, reason: LegacyClient.reason)
                await account.sealNext(under: key)
            }
            try await step(account)
            if let former, await !account.isOpen(with: former) { await presence.remove(former) }
        }
    }
}
