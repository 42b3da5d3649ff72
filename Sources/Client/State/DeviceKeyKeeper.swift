import CountersignSeal
import CountersignVault

/// Makes a device's keys, stores their private halves in the vault, and opens them. Blocks its thread for as
/// long as the vault and the hardware take; never called with the state's writing lock held but for
/// ``store(_:sparing:)``.
package final class DeviceKeyKeeper: Sendable {
    private let vault: Vault
    private let state: ItemName
    package let policy: DeviceKeyPolicy
    /// The keys that were opened last, so that a signature costs no look at the vault.
    private let memory = Locked(Memory())

    /// Other processes may write, too; more often in a row is a vault that does not store what it is given.
    private static let mostRounds = 100

    private struct Memory {
        var opened: Opened?
        /// What the state had of an earlier version's, while the vault does not take it.
        var unstored: DeviceKeyItem.Entry?
    }

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

    /// Where the keys of this client are.
    package var item: ItemName {
        get throws(VaultProblem) { try DeviceKeyKeeper.item(besides: state) }
    }

    /// The item beside a client's state.
    package static func item(besides state: ItemName) throws(VaultProblem) -> ItemName {
        try ItemName(service: service(besides: state.service), account: state.account)
    }

    /// The service of those items, for who removes what an earlier installation left.
    package static func service(besides state: String) -> String { "\(state) device" }

    // MARK: Making

    /// Keys that were made and are not stored.
    struct Made: Sendable {
        let keys: DeviceKeys
        let signing: WrappedKey
        let agreement: WrappedKey
        let signer: DeviceSigningKey

        /// What is stored of them in the vault.
        var entry: DeviceKeyItem.Entry {
            DeviceKeyItem.Entry(
                name: keys.name, storage: keys.storage, signing: keys.isBoundToPresence ? nil : signing,
                agreement: agreement)
        }
    }

    /// New keys whose signing half only presence is to let out, by the best back end that works.
    func makeBound() throws(ClientProblem) -> Made {
        var failure: ClientProblem?
        for maker in try policy.makers {
            do throws(ClientProblem) {
                return try make(by: maker, boundToPresence: true)
            } catch {
                failure = error
            }
        }
        throw failure ?? .machine("no P-256 key can be made")
    }

    private func make(
        by maker: any DeviceKeyBackEnd, boundToPresence isBound: Bool
    ) throws(ClientProblem) -> Made {
        do throws(DeviceKeyError) {
            let signing = try maker.makeKey(for: .signing)
            let agreement = try maker.makeKey(for: .agreement)
            let keys = DeviceKeys(
                signingPoint: signing.point, agreementPoint: agreement.point, storage: maker.storage,
                isBoundToPresence: isBound)
            let signer = DeviceSigningKey(try maker.signingKey(signing.wrapped))
            return Made(keys: keys, signing: signing, agreement: agreement, signer: signer)
        } catch {
            throw ClientProblem(error)
        }
    }

    // MARK: Storing

    /// Durable once it returns. `keysInUse` are those of the state.
    func store(_ entry: DeviceKeyItem.Entry, sparing keysInUse: String?) throws(VaultProblem) {
        let item = try item
        for _ in 0..<DeviceKeyKeeper.mostRounds {
            let found = try vault.read(item).certain()
            var contents = found.flatMap { DeviceKeyItem($0.contents.secret) } ?? DeviceKeyItem()
            contents.add(entry, sparing: keysInUse)
            do throws(VaultProblem) {
                try vault.write(
                    .bytes(contents.contents), to: item,
                    expecting: found.map { .version($0.version) } ?? .absent)
                return
            } catch {
                guard error == .changed else { throw error }
            }
        }
        throw .failed("\(item): written by others \(DeviceKeyKeeper.mostRounds) times in a row")
    }

    /// Keys for a login, held without anybody's presence: of the best back end that works, those that it has,
    /// else new ones, which are stored once this returns. Those in use come first, then the newest: they may
    /// be of a login that failed.
    func held(inUse known: DeviceKeys?) throws(ClientProblem) -> DeviceKeys {
        var candidates = try stored().entries.reversed().compactMap { $0.keys }
        if let known, let index = candidates.firstIndex(where: { $0.name == known.name }) {
            candidates.insert(candidates.remove(at: index), at: 0)
        }
        var failure: ClientProblem?
        for maker in try policy.makers {
            for keys in candidates where keys.storage == maker.storage && isUsable(keys) { return keys }
            do throws(ClientProblem) {
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

    /// Stores what the vault is to have of new keys.
    func store(_ made: Made, sparing keysInUse: DeviceKeys?) throws(ClientProblem) {
        do throws(VaultProblem) {
            try store(made.entry, sparing: keysInUse?.name)
        } catch {
            throw ClientProblem(error)
        }
    }

    /// Keeps in memory what cannot be stored yet.
    func hold(_ entry: DeviceKeyItem.Entry) { memory.with { $0.unstored = entry } }

    private func isUsable(_ keys: DeviceKeys) -> Bool {
        guard let handle = try? signing(keys) else { return false }
        return (try? handle.verifyUsable()) != nil
    }

    // MARK: Opening

    /// The signing key of keys that are held here. Throws ``ClientProblem/deviceKeyLost(_:)`` where it is
    /// gone for good.
    func signing(_ keys: DeviceKeys) throws(ClientProblem) -> any DeviceSigningKeyHandle {
        if let known = memory.with({ $0.opened?.keys == keys ? $0.opened?.signing : nil }) {
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
    func agreement(_ keys: DeviceKeys) throws(ClientProblem) -> any DeviceAgreementKeyHandle {
        if let known = memory.with({ $0.opened?.keys == keys ? $0.opened?.agreement : nil }) {
            return known
        }
        let wrapped = try entry(of: keys).agreement.wrapped
        let backEnd = try policy.backEnd(of: keys.storage)
        let handle: any DeviceAgreementKeyHandle
        do throws(DeviceKeyError) {
            handle = try backEnd.agreementKey(wrapped)
        } catch {
            throw ClientProblem(error)
        }
        guard handle.point == keys.agreementPoint else {
            throw .deviceKeyLost("the device's agreement key is another")
        }
        remember(keys) { $0.agreement = handle }
        return handle
    }

    /// A signing key that came out of presence.
    package func open(_ wrapped: Secret, of keys: DeviceKeys) throws(ClientProblem)
        -> any DeviceSigningKeyHandle
    {
        let backEnd = try policy.backEnd(of: keys.storage)
        let handle: any DeviceSigningKeyHandle
        do throws(DeviceKeyError) {
            handle = try backEnd.signingKey(wrapped)
        } catch {
            throw ClientProblem(error)
        }
        guard handle.point == keys.signingPoint else {
            throw .deviceKeyLost("the device's signing key is another")
        }
        return handle
    }

    private func entry(of keys: DeviceKeys) throws(ClientProblem) -> DeviceKeyItem.Entry {
        let unstored = memory.with { $0.unstored }
        if let unstored, unstored.name == keys.name { return unstored }
        guard let entry = try stored()[keys.name] else {
            throw .deviceKeyLost("the vault has no keys of this device")
        }
        return entry
    }

    private func stored() throws(ClientProblem) -> DeviceKeyItem {
        do throws(VaultProblem) {
            guard let found = try vault.read(item).certain() else { return DeviceKeyItem() }
            // What cannot be read holds no key that could be used.
            return DeviceKeyItem(found.contents.secret) ?? DeviceKeyItem()
        } catch {
            throw ClientProblem(error)
        }
    }

    private func remember(_ keys: DeviceKeys, _ change: (inout Opened) -> Void) {
        memory.with { memory in
            var now = memory.opened.flatMap { $0.keys == keys ? $0 : nil } ?? Opened(keys: keys)
            change(&now)
            memory.opened = now
        }
    }
}
