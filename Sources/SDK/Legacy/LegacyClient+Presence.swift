import CountersignClient

extension LegacyClient {
    /// What a person reads whose session's key is bound to his presence.
    static let reason = "Sign in"

    /// The gate after ``resume()``: asks the person to show that he is there, opens the session with the key
    /// that comes out, and renews its token where that has run out. Of who is offline the presence alone
    /// counts. `reason` is what he reads meanwhile.
    ///
    /// Until then the session's tokens are not known to this process: they lie in the vault sealed, and a
    /// copy of the vault does not open without the person. From then on they are in its memory, until it ends
    /// or somebody signs out. There is no device key on these wires: who has read a token elsewhere, on the
    /// way or at the server, uses it without any gate. Does nothing where the session is open; throws
    /// ``CountersignError/notPresent(_:)`` where nobody shows that he is there, and
    /// ``CountersignError/notSignedIn`` where nobody is signed in.
    public func unlock(_ reason: String) async throws(CountersignError) {
        guard let presence else { throw .misuse("presence: LegacyOptions.gate asks for nobody") }
        guard case .closed(let name) = try await lockNow() else {
            if await calls.owner() == nil { throw .notSignedIn }
            return
        }
        let key = try await presence.release(name, reason: reason)
        do throws(LegacyProblem) {
            guard try await account.unlock(with: key) else { throw .presenceNeeded }
        } catch {
            guard case .transport = error else { throw CountersignError(error) }
        }
    }

    private func lockNow() async throws(CountersignError) -> LegacyAccount.Lock {
        do throws(LegacyProblem) {
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
            // A login in place of the person who was waited for.
            guard await account.isOpen(with: name) else { throw .accountChanged }
            return
        }
        throw .cancelled
    }

    private func lock() async throws(CountersignError) -> LegacyAccount.Lock {
        do throws(LegacyProblem) {
            try await open()
            return try await account.lock()
        } catch {
            throw CountersignError(error)
        }
    }

    /// Carries out what begins a session. Its key is bound to presence before, where the gate asks for that:
    /// a session that nobody could open again is none.
    func keeping(
        _ step: @Sendable (LegacyAccount) async throws(LegacyProblem) -> Void
    ) async throws(CountersignError) {
        var former: String?
        do throws(LegacyProblem) {
            try await open()
            if presence != nil { former = try await account.keyName() }
        } catch {
            throw CountersignError(error)
        }
        if let presence { try await bind(presence) }
        do throws(LegacyProblem) {
            try await step(account)
            if let presence, let former, await !account.isOpen(with: former) { await presence.remove(former) }
        } catch {
            throw CountersignError(error)
        }
    }

    private func bind(_ presence: LegacyPresence) async throws(CountersignError) {
        let key: LegacySealKey?
        do throws(LegacyProblem) {
            key = try await account.keyToBind()
        } catch {
            throw CountersignError(error)
        }
        guard let key else { return }
        try await presence.bind(key, reason: LegacyClient.reason)
        await account.sealNext(under: key)
    }
}
