import CountersignGate
import CountersignSeal
import CountersignThreads
import CountersignWire

/// The X25519 keys that clients encrypt registrations to, in memory: the current one, and for a while after a
/// rotation the former one. The next registration sees a rotation by another process. Source:
/// docs/protocol.md, "Keys that clients know".
///
/// Unchecked, because `edition` is guarded by a lock beside it: `lock` lets registrations read at the same
/// time, and is held whenever `edition` is read or replaced.
package final class RegistrationKeys: @unchecked Sendable {
    private struct Edition {
        var current: SealedBox.Receiver
        var former: (key: SealedBox.Receiver, replaced: Int64)?
        var generation: UInt64
    }

    private let deployment: Deployment
    /// Guards `edition`.
    private let lock = ReadWriteLock()
    private var edition: Edition

    /// Makes the key if the deployment has none yet.
    package init(_ deployment: Deployment) throws(OperationalError) {
        self.deployment = deployment
        edition = try RegistrationKeys.load(deployment)
    }

    /// What clients encrypt to: 32 bytes.
    func publicHalf() throws(Refusal) -> [UInt8] { try latestForCaller().current.publicHalf }

    /// Opens a registration under the current key, or under the former one while registrations that were
    /// started with it may be finished. Nil if it opens under neither.
    func open(_ sealed: [UInt8], for purpose: [UInt8], at now: Int64) throws(Refusal) -> Secret? {
        let edition = try latestForCaller()
        if let contents = try? edition.current.open(sealed, for: purpose) { return contents }
        guard let former = edition.former, now < former.replaced + RegistrationHandle.lifetime else {
            return nil
        }
        return try? former.key.open(sealed, for: purpose)
    }

    /// Erases the former key from the store and from memory once no registration that was started with it
    /// can be finished. A server calls this every few seconds.
    package func eraseExpired(at now: TrustedTime) throws(OperationalError) {
        guard let former = try latest().former,
            now.seconds >= former.replaced + RegistrationHandle.lifetime
        else { return }
        try deployment.eraseFormerRegistrationKey(at: now.seconds)
        let fresh = try RegistrationKeys.load(deployment)
        lock.write { edition = fresh }
    }

    private func latestForCaller() throws(Refusal) -> Edition {
        do {
            return try latest()
        } catch {
            throw Refusal(.unavailable, detail: "registration key: \(error.message)")
        }
    }

    /// Throws if the store cannot be read after a change: the cached key may have been withdrawn.
    private func latest() throws(OperationalError) -> Edition {
        let held = lock.read { edition }
        if held.generation == deployment.generation.current { return held }
        let fresh = try RegistrationKeys.load(deployment)
        lock.write { edition = fresh }
        return fresh
    }

    /// Reads the generation before the store: a change between the two reads is then loaded twice, never
    /// missed.
    private static func load(_ deployment: Deployment) throws(OperationalError) -> Edition {
        let generation = deployment.generation.current
        let scalars = try deployment.registrationScalars().scalars
        guard let current = SealedBox.Receiver(scalars.current) else {
            throw Deployment.alteredRegistrationKeys
        }
        var edition = Edition(current: current, generation: generation)
        if let former = scalars.former {
            guard let key = SealedBox.Receiver(former.scalar) else {
                throw Deployment.alteredRegistrationKeys
            }
            edition.former = (key, former.replaced)
        }
        return edition
    }
}

/// The private halves as the store has them.
struct RegistrationScalars {
    var current: Secret
    /// `replaced` is when the current key took its place, whole Unix seconds.
    var former: (scalar: Secret, replaced: Int64)?
}

extension Deployment {
    /// For how many seconds after a rotation the former key opens registrations.
    package static let formerRegistrationKeyLifetime = RegistrationHandle.lifetime

    /// Makes a new registration key. The former one opens registrations until the last that was started with
    /// it has expired; the one before it is erased now. Fails, and changes nothing, if another process
    /// rotated at the same time.
    package func rotateRegistrationKey(at now: Int64) throws(OperationalError) {
        try requireClock(for: "registration key")
        let (scalars, stored) = try registrationScalars()
        let rotated = RegistrationScalars(
            current: Secret(random: SealedBox.Receiver.count), former: (scalars.current, now))
        let record = auditDraft(for: .registrationKeyRotate, on: .deployment)
        guard
            try store.exchange(.registrationKey, from: stored, to: sealed(rotated), recording: record) == .yes
        else {
            throw OperationalError(
                .failed, message: "registration key: it was rotated meanwhile; nothing was done")
        }
        generation.advance()
    }

    /// Removes the former key if it opens nothing any more.
    func eraseFormerRegistrationKey(at now: Int64) throws(OperationalError) {
        let (scalars, stored) = try registrationScalars()
        guard let former = scalars.former, now >= former.replaced + RegistrationHandle.lifetime else {
            return
        }
        // If another process changed the value since, the next call erases the key.
        _ = try store.exchange(
            .registrationKey, from: stored, to: sealed(RegistrationScalars(current: scalars.current)),
            with: [])
    }

    /// Created at first use.
    func registrationScalars() throws(OperationalError) -> (scalars: RegistrationScalars, stored: [UInt8]) {
        var stored = try store.value(of: .registrationKey)
        if stored == nil {
            let fresh = RegistrationScalars(current: Secret(random: SealedBox.Receiver.count))
            stored = try store.setIfAbsent(.registrationKey, to: sealed(fresh))
        }
        let found = stored ?? []
        return (try opened(found), found)
    }

    // `sealed current`, and after a rotation `‖ time (8 bytes) ‖ sealed former`. Each part is sealed for its
    // own place, and the last also for its time, so that no part can replace another.

    private func sealed(_ scalars: RegistrationScalars) -> [UInt8] {
        let current = seal(scalars.current, as: .registrationKey)
        guard let former = scalars.former else { return current }
        return current + former.replaced.bigEndianBytes
            + seal(former.scalar, as: .formerRegistrationKey(replaced: former.replaced))
    }

    private func opened(_ stored: [UInt8]) throws(OperationalError) -> RegistrationScalars {
        guard let parts = RegistrationScalars.parts(of: stored),
            let current = open(parts.current, as: .registrationKey)
        else { throw Deployment.alteredRegistrationKeys }
        guard let (sealedFormer, replaced) = parts.former else {
            return RegistrationScalars(current: current)
        }
        guard let former = open(sealedFormer, as: .formerRegistrationKey(replaced: replaced)) else {
            throw Deployment.alteredRegistrationKeys
        }
        return RegistrationScalars(current: current, former: (former, replaced))
    }

    static var alteredRegistrationKeys: OperationalError {
        OperationalError(
            .failed, message: "registration key: its sealed value does not open; the row was altered")
    }
}

extension RegistrationScalars {
    /// The parts of a stored value; nil if its length is none that was ever stored.
    fileprivate static func parts(
        of stored: [UInt8]
    ) -> (current: [UInt8], former: (sealed: [UInt8], replaced: Int64)?)? {
        // All sealed scalars have one length.
        let isAlone = stored.count == sealedCount
        guard isAlone || stored.count == 2 * sealedCount + 8 else { return nil }
        let former = stored[sealedCount...]
        return (
            Array(stored[..<sealedCount]),
            isAlone
                ? nil
                : (Array(former.suffix(sealedCount)), Int64(bigEndianBytes: former.prefix(8)))
        )
    }

    /// Seals each part of a stored value anew; nil if one does not open.
    static func sealAgain(
        _ stored: [UInt8], by seal: (_ part: [UInt8], _ binding: SealBinding) -> [UInt8]?
    ) -> [UInt8]? {
        guard let parts = parts(of: stored), let current = seal(parts.current, .registrationKey) else {
            return nil
        }
        guard let (sealedFormer, replaced) = parts.former else { return current }
        let place = SealBinding.formerRegistrationKey(replaced: replaced)
        guard let former = seal(sealedFormer, place) else { return nil }
        return current + replaced.bigEndianBytes + former
    }

    private static let sealedCount = MasterKey.sealedCount(of: SealedBox.Receiver.count)
}

extension SealBinding {
    fileprivate static let registrationKey = SealBinding(kind: "registration-key", row: "registration-key")

    fileprivate static func formerRegistrationKey(replaced: Int64) -> SealBinding {
        SealBinding(kind: "registration-key", row: "former", epoch: UInt64(bitPattern: replaced))
    }
}
