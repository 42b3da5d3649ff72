import CountersignSeal

/// The device that a login presents: its keys, and who signs for it now.
struct LoginDevice: Sendable {
    /// As they are kept once the login has succeeded.
    let keys: DeviceKeys
    let signer: any DeviceSigner
    /// What is to be bound before.
    private let unbound: (key: Secret, binder: any DeviceKeyBinder)?

    /// The keys that are there, where their signing key is kept as is wished; else new ones: what was in the vault once may be in a
    /// copy of it, and what was bound is not let out. New ones take the old ones' place when the login succeeds, and not
    /// before: a session may live by those.
    init(_ surroundings: Surroundings, keeping place: SigningKeyPlace) throws(ClientProblem) {
        switch place {
        case .vault:
            let keys = try surroundings.keeper.heldKeys()
            self.init(keys: keys, signer: try surroundings.signer(keys), unbound: nil)
        case .boundToPresence(let binder):
            if let keys = try surroundings.keeper.state().keys, let signer = surroundings.signer,
                case .bound(signer.point) = keys.signing
            {
                self.init(keys: keys, signer: signer, unbound: nil)
                return
            }
            let fresh = try DeviceKeys()
            guard case .held(let signer, let key) = fresh.signing else { throw .machine("no P-256 key can be made") }
            self.init(keys: try fresh.withoutSigningKey(), signer: signer, unbound: (key, binder))
        }
    }

    private init(keys: DeviceKeys, signer: any DeviceSigner, unbound: (key: Secret, binder: any DeviceKeyBinder)?) {
        self.keys = keys
        self.signer = signer
        self.unbound = unbound
    }

    /// Before there is a session that could not go on without the key.
    nonisolated(nonsending) func bind() async throws(ClientProblem) {
        guard let unbound else { return }
        try await unbound.binder.bind(unbound.key, named: keys.name)
    }
}

extension StateKeeper {
    /// The device's keys, the signing one among them. They are made and kept where there are none at all yet.
    fileprivate func heldKeys() throws(ClientProblem) -> DeviceKeys {
        try change { (state) throws(ClientProblem) in
            if let keys = state.keys { return .keep(keys.isBoundToPresence ? try DeviceKeys() : keys) }
            let keys = try DeviceKeys()
            state.keys = keys
            return .write(keys)
        }
    }

    /// Of a session by password, which presents the device and signs nothing with it.
    func anyKeys() throws(ClientProblem) -> DeviceKeys {
        if let keys = try state().keys { return keys }
        return try heldKeys()
    }
}
