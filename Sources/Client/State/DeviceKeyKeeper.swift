import CountersignSeal
import CountersignVault

/// Makes a device's keys, stores their private halves in the vault, and opens them. Blocks its thread for as
/// long as the vault and the hardware take; never called with the state's writing lock held, except for
/// ``store(_:sparing:)``.
package final class DeviceKeyKeeper: Sendable {
    private let vault: Vault
    private let state: ItemName
    package let policy: DeviceKeyPolicy
    /// The keys that were opened last, so that a signature needs no read of the vault.
    private let memory = Locked<Opened?>(nil)

    /// Other processes may write, too; more failures in a row mean that the vault does not store what it is
    /// given.
    private static let mostRounds = 100

    private struct Opened {
        let keys: DeviceKeys
        var signing: (any DeviceSigningKeyHandle)?
        var agreement: (any DeviceAgreementKeyHandle)?
    }

    init(_ vault: Vault, besides state: ItemName, policy: DeviceKeyPolicy) {
        self.vault = vault
        self.state = state
        self.policy = policy
    }

    /// The vault item of this client's keys.
    package var item: ItemName {
        get throws(VaultError) { try DeviceKeyKeeper.item(besides: state) }
    }

    /// The item beside a client's state.
    package static func item(besides state: ItemName) throws(VaultError) -> ItemName {
        try ItemName(service: service(besides: state.service), account: state.account)
    }

    /// The service of those items, for code that removes what an earlier installation left.
    package static func service(besides state: String) -> String { "\(state) device" }

    // MARK: Making

    /// Keys that were made and are not stored yet.
    struct Made: Sendable {
        let keys: DeviceKeys
        let signing: WrappedKey
        let agreement: WrappedKey
        let signer: DeviceSigningKey

        /// The part of them that the vault stores.
        var entry: DeviceKeyItem.Entry {
            DeviceKeyItem.Entry(
                name: keys.name, storage: keys.storage, signing: keys.isBoundToPresence ? nil : signing,
                agreement: agreement)
        }
    }

    /// New keys, made by the best back end that works, whose signing half only presence releases.
    func makeBound() throws(ClientOperationError) -> Made {
        var failure: ClientOperationError?
        for maker in try policy.makers {
            do throws(ClientOperationError) {
                return try make(by: maker, boundToPresence: true)
            } catch {
                failure = error
            }
        }
        throw failure ?? .machine("no P-256 key can be made")
    }

    private func make(
        by maker: any DeviceKeyBackEnd, boundToPresence isBound: Bool
    ) throws(ClientOperationError) -> Made {
        do throws(DeviceKeyError) {
            let signing = try maker.makeKey(for: .signing)
            let agreement = try maker.makeKey(for: .agreement)
            let keys = DeviceKeys(
                signingPoint: signing.point, agreementPoint: agreement.point, storage: maker.storage,
                isBoundToPresence: isBound)
            let signer = DeviceSigningKey(try maker.signingKey(signing.wrapped))
            return Made(keys: keys, signing: signing, agreement: agreement, signer: signer)
        } catch {
            throw ClientOperationError(error)
        }
    }

    // MARK: Storing

    /// Durable once it returns. `keysInUse` are those of the state. Fails if the item cannot be read, since
    /// it may hold a later version's keys.
    func store(_ entry: DeviceKeyItem.Entry, sparing keysInUse: String?) throws(VaultError) {
        let item = try item
        for _ in 0..<DeviceKeyKeeper.mostRounds {
            var (contents, found) = try read()
            contents.add(entry, sparing: keysInUse)
            do throws(VaultError) {
                try vault.write(.bytes(contents.contents), to: item, expecting: found)
                return
            } catch {
                guard error == .changed else { throw error }
            }
        }
        throw .failed("\(item): written by others \(DeviceKeyKeeper.mostRounds) times in a row")
    }

    /// Keys for a login that work without presence, from the first back end of the policy that works: its
    /// stored keys if some are usable, otherwise new ones, which are stored before this returns. Of the
    /// stored keys, `known`, the keys in use, come first, then the newest: those may belong to a login that
    /// failed.
    func keysForLogin(preferring known: DeviceKeys?) throws(ClientOperationError) -> DeviceKeys {
        var candidates = try stored().entries.reversed().compactMap { $0.keys }
        if let known, let index = candidates.firstIndex(where: { $0.name == known.name }) {
            candidates.insert(candidates.remove(at: index), at: 0)
        }
        var failure: ClientOperationError?
        for maker in try policy.makers {
            for keys in candidates where keys.storage == maker.storage && isUsable(keys) { return keys }
            do throws(ClientOperationError) {
                let made = try make(by: maker, boundToPresence: false)
                try store(made, sparing: known)
                return made.keys
            } catch {
                guard case .deviceKeyUnavailable = error else { throw error }
                failure = error
            }
        }
        throw failure ?? .machine("no P-256 key can be made")
    }

    /// Stores the vault's part of new keys.
    func store(_ made: Made, sparing keysInUse: DeviceKeys?) throws(ClientOperationError) {
        do throws(VaultError) {
            try store(made.entry, sparing: keysInUse?.name)
        } catch {
            throw ClientOperationError(error)
        }
    }

    private func isUsable(_ keys: DeviceKeys) -> Bool {
        guard let handle = try? signing(keys) else { return false }
        return (try? handle.verifyUsable()) != nil
    }

    // MARK: Opening

    /// The signing key of stored keys. Throws ``ClientOperationError/deviceKeyLost(_:)`` if it is gone for
    /// good.
    func signing(_ keys: DeviceKeys) throws(ClientOperationError) -> any DeviceSigningKeyHandle {
        if let known = memory.with({ $0?.keys == keys ? $0?.signing : nil }) {
            return known
        }
        guard let wrapped = try entry(of: keys).signing else {
            throw .deviceKeyLost("the vault has no signing key of this device")
        }
        let handle = try open(wrapped.wrapped, of: keys)
        remember(keys) { $0.signing = handle }
        return handle
    }

    /// The agreement key.
    func agreement(_ keys: DeviceKeys) throws(ClientOperationError) -> any DeviceAgreementKeyHandle {
        if let known = memory.with({ $0?.keys == keys ? $0?.agreement : nil }) {
            return known
        }
        let wrapped = try entry(of: keys).agreement.wrapped
        let backEnd = try policy.backEnd(of: keys.storage)
        let handle: any DeviceAgreementKeyHandle
        do throws(DeviceKeyError) {
            handle = try backEnd.agreementKey(wrapped)
        } catch {
            throw ClientOperationError(error)
        }
        guard handle.point == keys.agreementPoint else {
            throw .deviceKeyLost("the device's agreement key is another")
        }
        remember(keys) { $0.agreement = handle }
        return handle
    }

    /// A signing key that presence released.
    package func open(_ wrapped: Secret, of keys: DeviceKeys) throws(ClientOperationError)
        -> any DeviceSigningKeyHandle
    {
        let backEnd = try policy.backEnd(of: keys.storage)
        let handle: any DeviceSigningKeyHandle
        do throws(DeviceKeyError) {
            handle = try backEnd.signingKey(wrapped)
        } catch {
            throw ClientOperationError(error)
        }
        guard handle.point == keys.signingPoint else {
            throw .deviceKeyLost("the device's signing key is another")
        }
        return handle
    }

    private func entry(of keys: DeviceKeys) throws(ClientOperationError) -> DeviceKeyItem.Entry {
        guard let entry = try stored()[keys.name] else {
            throw .deviceKeyLost("the vault has no keys of this device")
        }
        return entry
    }

    private func stored() throws(ClientOperationError) -> DeviceKeyItem {
        do throws(VaultError) {
            return try read().contents
        } catch {
            throw ClientOperationError(error)
        }
    }

    /// The item, empty if there is none. A layout that this build does not know is an error of the vault, not
    /// the loss of the keys, which would end the session.
    private func read() throws(VaultError) -> (contents: DeviceKeyItem, found: Vault.Expectation) {
        let item = try item
        guard let found = try vault.read(item).get() else { return (DeviceKeyItem(), .absent) }
        guard let contents = DeviceKeyItem(found.contents.secret) else {
            throw .failed("\(item): holds what this build cannot read")
        }
        return (contents, .version(found.version))
    }

    private func remember(_ keys: DeviceKeys, change: (inout Opened) -> Void) {
        memory.with { opened in
            var now = opened.flatMap { $0.keys == keys ? $0 : nil } ?? Opened(keys: keys)
            change(&now)
            opened = now
        }
    }
}
