import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignTrust
import CountersignVault

/// Secrets in the vault that are released only when the user is present.
struct PresenceSecrets: Sendable {
    let presence: UserPresence
    let vault: Vault
    /// Apart from the session's item: these are sealed to a person.
    let service: String

    /// The system shows `reason` with its prompt.
    func set(_ secret: Secret, named name: String, reason: String) async throws(ClientOperationError) {
        let answer: PresenceAnswer<Void>
        do throws(VaultError) {
            answer = try await presence.setSecret(secret, at: try place(name), in: vault, reason: reason)
        } catch {
            throw ClientOperationError(error)
        }
        if case .notPresent(let step, _) = answer { throw .notPresent(step) }
    }

    func secret(named name: String, reason: String) async throws(ClientOperationError) -> Secret {
        let answer: PresenceAnswer<Secret>
        do throws(VaultError) {
            answer = try await presence.secret(try place(name), in: vault, reason: reason)
        } catch {
            throw ClientOperationError(error)
        }
        switch answer {
        case .present(let secret): return secret
        case .notPresent(let step, _): throw .notPresent(step)
        }
    }

    /// A failure is harmless: the secret remains without the session that it opens.
    func remove(_ name: String) async {
        guard let place = try? place(name) else { return }
        try? await presence.remove(place, in: vault)
    }

    private func place(_ name: String) throws(VaultError) -> ItemName {
        try ItemName(service: service, account: name)
    }
}

/// A device's signing key that is released only when the user is present.
struct PresenceBoundKey: DeviceKeyBinder {
    let secrets: PresenceSecrets
    /// The text that the system shows with its prompt.
    let reason: String

    func bind(_ key: Secret, named name: String) async throws(ClientOperationError) {
        try await secrets.set(key, named: name, reason: reason)
    }

    /// The key, until it is revoked. In hardware it is the wrapped key that presence releases.
    func release(_ keys: DeviceKeys, in environment: ClientEnvironment) async throws(CountersignError)
        -> PresenceSigner
    {
        do throws(ClientOperationError) {
            let secret = try await secrets.secret(named: keys.name, reason: reason)
            return PresenceSigner(try environment.open(secret, of: keys))
        } catch {
            throw CountersignError(error)
        }
    }
}

/// A key that can be revoked: code that has kept the signer can then no longer sign.
final class PresenceSigner: DeviceSigner {
    let point: P256Point
    private let key: Locked<DeviceSigningKey?>

    init(_ key: DeviceSigningKey) {
        point = key.point
        self.key = Locked(key)
    }

    func sign(_ text: [UInt8]) throws(ClientOperationError) -> [UInt8] {
        guard let key = key.with({ $0 }) else { throw .presenceNeeded }
        return try key.sign(text)
    }

    /// The signer itself until it is revoked, then nil.
    var present: PresenceSigner? { key.with { $0 } == nil ? nil : self }

    func revoke() { key.with { $0 = nil } }
}

extension CountersignClient {
    /// Asks the user to confirm their presence and runs `body` with the device's key: for routes that ask for
    /// the device's signature, a refresh, or a change of password. The system shows `reason` in its prompt.
    ///
    /// The key is available during `body` and revoked when it ends, even if `body` has kept the client that
    /// it received. Throws ``CountersignError/notPresent(_:)`` if the user does not confirm their presence.
    /// Only for clients whose key is bound (``CountersignOptions/deviceKey``): otherwise presence opens
    /// nothing.
    public func withPresence<Result: Sendable>(
        _ reason: String, _ body: (CountersignClient) async throws -> Result
    ) async throws -> Result {
        let signer = try await core.releaseKey(reason)
        defer { signer.revoke() }
        return try await body(CountersignClient(core: core, signer: signer))
    }

    /// Passes the gate after ``resume()``: asks the user to confirm their presence, and has the authority
    /// confirm the session, renewed if its token has expired. If the device is offline, presence alone is
    /// enough. Until this or ``withPresence(_:_:)`` has succeeded once, requests are held back
    /// (``CountersignOptions/gate``).
    public func unlock(_ reason: String) async throws(CountersignError) {
        let signer = try await core.releaseKey(reason)
        defer { signer.revoke() }
        do throws(CountersignError) {
            try await CountersignClient(core: core, signer: signer).confirmAtTheGate()
        } catch {
            guard case .transport = error else { throw error }
        }
    }
}

extension ClientCore {
    /// The device's key, once the user has confirmed their presence.
    fileprivate func releaseKey(_ reason: String) async throws(CountersignError) -> PresenceSigner {
        try await open()
        guard let bound = boundKey(reason) else {
            throw .misuse("presence: CountersignOptions.deviceKey binds no key to it")
        }
        guard let keys = try storedState().keys, keys.isBoundToPresence else { throw .notSignedIn }
        let signer = try await bound.release(keys, in: environment)
        stateMachine.openGate()
        return signer
    }

    /// Nil if the key is stored with the session.
    func boundKey(_ reason: String) -> PresenceBoundKey? {
        guard case .boundToPresence(let presence) = options.deviceKey else { return nil }
        let secrets = PresenceSecrets(
            presence: presence, vault: vault.vault, service: "\(item.service) key")
        return PresenceBoundKey(secrets: secrets, reason: reason)
    }
}
