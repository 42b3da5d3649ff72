import CountersignSeal
import CountersignVault

/// The device that a login presents: its keys, and who signs for it now.
struct LoginDevice: Sendable {
    /// As they are kept once the login has succeeded.
    let keys: DeviceKeys
    let signer: any DeviceSigner
    /// What is to be bound before.
    private let unbound: (key: Secret, binder: any DeviceKeyBinder)?

    /// The keys that are there, where they work, and are kept where and as is wished; else new ones: what was
    /// in the vault once may be in a copy of it, and what was bound is not let out. New ones take the old
    /// ones' place when the login succeeds, and not before: a session may live by those.
    init(_ surroundings: Surroundings, keeping place: SigningKeyPlace) throws(ClientProblem) {
        let deviceKeys = surroundings.keeper.deviceKeys
        let known = try surroundings.keeper.state().keys
        switch place {
        case .vault:
            keys = try deviceKeys.held(inUse: known)
            signer = try surroundings.signer(keys)
            unbound = nil
        case .boundToPresence(let binder):
            let best = try deviceKeys.policy.makers.first?.storage
            if let known, known.isBoundToPresence, known.storage == best,
                known.signingPoint == surroundings.signer?.point
            {
                (keys, signer, unbound) = (known, try surroundings.signer(known), nil)
                return
            }
            let made = try deviceKeys.makeBound()
            try deviceKeys.store(made, sparing: known)
            (keys, signer, unbound) = (made.keys, made.signer, (made.signing.wrapped, binder))
        }
    }

    /// Before there is a session that could not go on without the key.
    nonisolated(nonsending) func bind() async throws(ClientProblem) {
        guard let unbound else { return }
        try await unbound.binder.bind(unbound.key, named: keys.name)
    }
}
