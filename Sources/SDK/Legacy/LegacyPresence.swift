import CountersignClient
import CountersignSeal
import CountersignVault

/// The keys of a legacy client's sessions that are released only when the user is present.
struct LegacyPresence: Sendable {
    let presence: UserPresence
    let vault: Vault
    /// Apart from the session's item: these are sealed to a person.
    let service: String

    func bind(_ key: LegacySealKey, reason: String) async throws(CountersignError) {
        let answer: PresenceAnswer<Void>
        do throws(VaultError) {
            answer = try await presence.setSecret(
                key.secret, at: try place(key.name), in: vault, reason: reason)
        } catch {
            throw CountersignError(error)
        }
        if case .notPresent(let step, _) = answer { throw .notPresent(step) }
    }

    func release(_ name: String, reason: String) async throws(CountersignError) -> LegacySealKey {
        let answer: PresenceAnswer<Secret>
        do throws(VaultError) {
            answer = try await presence.secret(try place(name), in: vault, reason: reason)
        } catch {
            throw CountersignError(error)
        }
        switch answer {
        case .present(let secret): return LegacySealKey(name: name, secret: secret)
        case .notPresent(let step, _): throw .notPresent(step)
        }
    }

    /// A failure is harmless: the key remains without the session that it seals.
    func remove(_ name: String) async {
        guard let place = try? place(name) else { return }
        try? await presence.remove(place, in: vault)
    }

    private func place(_ name: String) throws(VaultError) -> ItemName {
        try ItemName(service: service, account: name)
    }
}

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
        guard case .closed(let name) = try await lockNow() else {
            if await calls.owner() == nil { throw .notSignedIn }
            return
        }
        let key = try await presence.release(name, reason: reason)
        do throws(ClientOperationError) {
            guard try await account.unlock(with: key) else { throw .presenceNeeded }
        } catch {
            guard case .transport = error else { throw CountersignError(error) }
        }
    }

    private func lockNow() async throws(CountersignError) -> LegacyAccount.Lock {
        do throws(ClientOperationError) {
            try await open()
            return try await account.lockNow()
        } catch {
            throw CountersignError(error)
        }
    }

    /// Returns once a request may go out; throws where it may not.
    func admit(_ caller: APIRequest.Caller) async throws(CountersignError) {
        guard caller == .account, presence != nil else { return }
        guard case .closed(let name) = try await lock() else { return }
        guard options.whenLocked == .wait else { throw .presenceNeeded }
        for await _ in states {
            guard try await lock() == .open else { continue }
            // Another account has signed in instead of the awaited one.
            guard await account.isOpen(with: name) else { throw .accountChanged }
            return
        }
        throw .cancelled
    }

    private func lock() async throws(CountersignError) -> LegacyAccount.Lock {
        do throws(ClientOperationError) {
            try await open()
            return try await account.lock()
        } catch {
            throw CountersignError(error)
        }
    }

    /// Runs an operation that begins a session. Binds the session's key to presence first if the gate asks
    /// for that: a session that no user could open again would be useless.
    func keeping(
        _ step: @Sendable (LegacyAccount) async throws(ClientOperationError) -> Void
    ) async throws(CountersignError) {
        var former: String?
        do throws(ClientOperationError) {
            try await open()
            if presence != nil { former = try await account.keyName() }
        } catch {
            throw CountersignError(error)
        }
        if let presence { try await bind(presence) }
        do throws(ClientOperationError) {
            try await step(account)
            if let presence, let former, await !account.isOpen(with: former) { await presence.remove(former) }
        } catch {
            throw CountersignError(error)
        }
    }

    private func bind(_ presence: LegacyPresence) async throws(CountersignError) {
        let key: LegacySealKey?
        do throws(ClientOperationError) {
            key = try await account.keyToBind()
        } catch {
            throw CountersignError(error)
        }
        guard let key else { return }
        try await presence.bind(key, reason: LegacyClient.reason)
        await account.sealNext(under: key)
    }
}
