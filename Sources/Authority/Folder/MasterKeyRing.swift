import CountersignMemory
import CountersignSeal
import CountersignWire
import Glibc

/// The master key, and while it is replaced the next one too. Stored values name the key that sealed them by
/// their first byte, so that both kinds open; new values are sealed under the next key as soon as there is
/// one. Source: docs/decisions/0059-rotation-of-the-master-key.md.
///
/// Another process replaces the key. This one notices by the deployment's generation, which is read before
/// each seal; a server asks the store as well, every few seconds; and a value that does not open makes it
/// look, too. The store refuses values of the former key (``SealStore``), so that one that was sealed before
/// the notice and written after it is not lost.
package final class MasterKeyRing: Sealer {
    /// The keys that open and seal.
    struct Keys: Sendable {
        var current: MasterKey
        /// The slot of the current key.
        var slot: SealSlot
        /// Only while the key is replaced.
        var next: MasterKey?

        func key(of slot: SealSlot) -> MasterKey? {
            slot == self.slot ? current : slot == self.slot.next ? next : nil
        }

        var all: [MasterKey] { [current, next].compactMap(\.self) }
    }

    private struct Kept {
        var keys: Keys
        /// The store's values that `keys` were found by.
        var checks: MasterKeyChecks
        /// The generation at the last look.
        var generation: UInt64
        /// Seconds on the monotonic clock at the last look.
        var looked: Int
        /// The key that was replaced last, and until when handles that it sealed open, in monotonic seconds.
        var former: (key: MasterKey, slot: SealSlot, until: Int)?
    }

    /// Seconds for which what clients hold still opens after the key was replaced.
    private static let formerSeconds = Int(RegistrationHandle.lifetime)

    private let kept: Locked<Kept>
    private let store: any Store
    private let source: MasterKeySource
    private let generation: DeploymentGeneration
    /// For values in memory only.
    private let processKey: MasterKey

    init(
        _ keys: Keys, checks: MasterKeyChecks, in store: any Store, source: MasterKeySource,
        generation: DeploymentGeneration
    ) throws(OperationalError) {
        guard let processKey = MasterKey(MasterKey.random()) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        self.processKey = processKey
        self.store = store
        self.source = source
        self.generation = generation
        kept = Locked(
            Kept(
                keys: keys, checks: checks, generation: generation.current,
                looked: MasterKeyRing.monotonicSeconds))
    }

    package func seal(_ secret: Secret, as binding: SealBinding, random: some RandomSource) -> [UInt8] {
        lookIfChanged()
        let (key, slot) = kept.with { kept in
            kept.keys.next.map { ($0, kept.keys.slot.next) } ?? (kept.keys.current, kept.keys.slot)
        }
        return key.seal(secret, as: binding, slot: slot, random: random)
    }

    package func sealForMemory(_ secret: Secret, as binding: SealBinding) -> [UInt8] {
        processKey.seal(secret, as: binding, slot: .process)
    }

    package func open(_ sealed: [UInt8], as binding: SealBinding) throws(SealError) -> Secret {
        guard let slot = sealed.first.map(SealSlot.init(rawValue:)) else { throw SealError.notOpened }
        if let key = key(of: slot), let opened = try? key.open(sealed, as: binding, slot: slot) {
            return opened
        }
        guard slot != .process else { throw SealError.notOpened }
        // At most once a second, so that altered values do not cost a look each.
        let isRecent = kept.with { $0.looked == MasterKeyRing.monotonicSeconds }
        if isRecent { lookIfChanged() } else { try? look() }
        guard let key = key(of: slot) else { throw SealError.notOpened }
        return try key.open(sealed, as: binding, slot: slot)
    }

    /// The same steps for each slot: how long it takes does not tell a stored value from one in memory.
    private func key(of slot: SealSlot) -> MasterKey? {
        kept.with { slot == .process ? processKey : $0.keys.key(of: slot) }
    }

    /// The same for what clients hold and send back: the former key opens it, too, for as long as it is good.
    func openHeld(_ sealed: [UInt8], as binding: SealBinding) -> Secret? {
        if let opened = try? open(sealed, as: binding) { return opened }
        let former = kept.with { $0.former }
        guard let former, MasterKeyRing.monotonicSeconds < former.until else { return nil }
        return try? former.key.open(sealed, as: binding, slot: former.slot)
    }

    var keys: Keys { kept.with { $0.keys } }

    /// Looks for other keys if another process has changed something.
    private func lookIfChanged() {
        let now = generation.current
        let isDue = kept.with { $0.generation != now }
        // What cannot be read is read at the next look, and a server logs it: until then the former keys
        // stay, and the store refuses what they seal if they are no longer the ones.
        if isDue { try? look() }
    }

    /// Reads the store's checks, and the keys where these have changed.
    package func look() throws(OperationalError) {
        let now = generation.current
        // Before the look: one that fails is not repeated at once.
        kept.with { kept in
            kept.generation = now
            kept.looked = MasterKeyRing.monotonicSeconds
        }
        try look(generation: now)
    }

    private func look(generation now: UInt64) throws(OperationalError) {
        let checks = try MasterKeyChecks(in: store)
        let (isKnown, held) = kept.with { ($0.checks == checks, $0.keys) }
        if isKnown { return }
        let (keys, found) = try MasterKeyRing.find(in: store, source: source, holding: held.all)
        let seconds = MasterKeyRing.monotonicSeconds
        kept.with { kept in
            if keys.current.id != kept.keys.current.id {
                kept.former = (kept.keys.current, kept.keys.slot, seconds + MasterKeyRing.formerSeconds)
            }
            (kept.keys, kept.checks, kept.generation, kept.looked) = (keys, found, now, seconds)
        }
    }

    /// The keys that the store's checks demand. Throws if one of them is neither where master keys are nor
    /// among `held`, those of this process.
    static func find(
        in store: any Store, source: MasterKeySource, holding held: [MasterKey] = []
    ) throws(OperationalError) -> (Keys, MasterKeyChecks) {
        var attempt = 0
        while true {
            do {
                // Keys are made before the store names them, and removed after it has ceased to: a look
                // between the two reads may miss a key that the second look finds.
                let found = try source.find()
                let checks = try MasterKeyChecks(in: store)
                let all = [found.current, found.next].compactMap(\.self) + held
                return (try checks.keys(among: all, source: source), checks)
            } catch {
                attempt += 1
                if attempt == 3 { throw error }
            }
        }
    }

    private static var monotonicSeconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }
}

/// The store's sealed values by which its master keys are recognised.
struct MasterKeyChecks: Equatable {
    /// Under the current key.
    var current: [UInt8]
    /// Under the next key; nil unless the key is being replaced.
    var next: [UInt8]?

    init(in store: any Store) throws(OperationalError) {
        guard let current = try store.value(of: .masterKeyCheck) else {
            throw OperationalError(.failed, message: "master key: the store has no check of it")
        }
        self.current = current
        next = try store.value(of: .masterKeyNextCheck)
    }

    /// Which of the found keys are the store's.
    func keys(
        among all: [MasterKey], source: MasterKeySource
    ) throws(OperationalError) -> MasterKeyRing.Keys {
        guard !all.isEmpty else {
            throw OperationalError(
                .failed,
                message: "master key: there is none, but the store was sealed with one; expected it in "
                    + "\(MasterKeySource.variable), a systemd credential or \(source.path)")
        }
        guard let key = all.first(where: { MasterKeyCheck(current, under: $0) != nil }),
            let slot = current.first.map(SealSlot.init(rawValue:))
        else {
            throw OperationalError(
                .failed, message: "master key: not the one this store was sealed with; nothing was changed")
        }
        // A check for the next key that was restored from an earlier state belongs to the current key or to a
        // former one, and is ignored.
        guard let next, next.first == slot.next.rawValue, MasterKeyCheck(next, under: key) == nil else {
            return MasterKeyRing.Keys(current: key, slot: slot)
        }
        guard let follower = all.first(where: { MasterKeyCheck(next, under: $0) != nil }) else {
            throw OperationalError(
                .failed,
                message: "master key: it is being replaced, and its successor is missing; expected it in "
                    + source.nextPath)
        }
        return MasterKeyRing.Keys(current: key, slot: slot, next: follower)
    }
}

extension Deployment {
    /// The id of the master key in hexadecimal, and whether the key is being replaced.
    package var masterKeyState: (id: String, isBeingReplaced: Bool) {
        let keys = masterKey.keys
        return (keys.current.idText, keys.next != nil)
    }
}

extension MasterKey {
    /// The id in hexadecimal.
    package var idText: String {
        let bytes = id
        return Hex.encode(bytes.span)
    }
}
