import CountersignClient
import CountersignVault

extension CountersignClient {
    /// Asks the person to show that he is there, and lets `body` do what needs the device's key: routes that ask for the device's
    /// signature, a refresh, another password. `reason` is what he reads meanwhile.
    ///
    /// The key is let out for `body` and taken back when it ends, whatever `body` has kept of the client it was given. Throws
    /// ``CountersignError/notPresent(_:)`` where nobody shows that he is there. Only for clients whose key is bound
    /// (``CountersignOptions/deviceKey``): where it is not, there is nothing that a presence would open.
    public nonisolated(nonsending) func withPresence<Result: Sendable>(
        _ reason: String, _ body: nonisolated(nonsending) (CountersignClient) async throws -> Result
    ) async throws -> Result {
        let signer = try await core.releaseKey(reason)
        defer { signer.takeBack() }
        return try await body(CountersignClient(core: core, signer: signer))
    }

    /// The gate after ``resume()``: asks the person to show that he is there, and has the authority confirm the session, renewed
    /// where its token has run out. Of who is offline the presence alone counts. Until this or ``withPresence(_:_:)`` has succeeded
    /// once, requests are held back (``CountersignOptions/gate``).
    public func unlock(_ reason: String) async throws(CountersignError) {
        let signer = try await core.releaseKey(reason)
        defer { signer.takeBack() }
        do throws(CountersignError) {
            try await CountersignClient(core: core, signer: signer).confirmAtTheGate()
        } catch {
            guard case .transport = error else { throw error }
        }
    }
}

extension ClientCore {
    /// The device's key, once somebody has shown that he is there.
    fileprivate func releaseKey(_ reason: String) async throws(CountersignError) -> PassingSigner {
        try await open()
        guard let bound = boundKey(reason) else {
            throw .misuse("presence: CountersignOptions.deviceKey binds no key to it")
        }
        let keys: DeviceKeys?
        do throws(ClientProblem) {
            keys = try keeper.state().keys
        } catch {
            throw CountersignError(error)
        }
        guard let keys, keys.isBoundToPresence else { throw .notSignedIn }
        let signer = try await bound.release(keys, in: surroundings)
        standings.openGate()
        return signer
    }

    /// Nil where the key is kept with the session.
    func boundKey(_ reason: String) -> BoundKey? {
        guard case .boundToPresence(let presence) = options.deviceKey else { return nil }
        return BoundKey(presence: presence, vault: vault.vault, service: "\(item.service) key", reason: reason)
    }
}
