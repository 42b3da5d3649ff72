import CountersignSeal
import CountersignWire

/// The seeds of the Ed25519 keys that sign assertions to backends. They are separate from the answer key,
/// because other parties trust them for another purpose. Source: docs/protocol.md, "To the upstream".
package struct AssertionSeeds: Sendable {
    /// The previous key: its public key stays listed while assertions that it signed may still be in
    /// transit.
    package struct Previous: Sendable, Equatable {
        package var publicHalf: [UInt8]
        /// When the current key replaced it, whole Unix seconds.
        package var replaced: Int64
    }

    package var current: Secret
    /// Signs nothing yet. It is listed with the current key, so that backends know it before it is used.
    package var next: Secret
    package var previous: Previous?
}

extension Deployment {
    /// Created at first use.
    package func assertionSeeds() throws(OperationalError) -> AssertionSeeds {
        if let stored = try store.value(of: .assertionKeys) { return try opened(stored) }
        let fresh = AssertionSeeds(
            current: Secret(random: AnswerKey.seedCount), next: Secret(random: AnswerKey.seedCount))
        return try opened(store.setIfAbsent(.assertionKeys, to: sealed(fresh)))
    }

    /// Makes the next key the current one, and a new key the next one. Two concurrent rotations end with
    /// the same current key.
    package func rotateAssertionKeys(at now: Int64) throws(OperationalError) {
        try requireClock(for: "assertion keys")
        let seeds = try assertionSeeds()
        guard let publicHalf = AnswerKey.publicHalf(of: seeds.current) else { throw Deployment.alteredSeeds }
        let rotated = AssertionSeeds(
            current: seeds.next, next: Secret(random: AnswerKey.seedCount),
            previous: AssertionSeeds.Previous(publicHalf: publicHalf, replaced: now))
        try store.set(
            .assertionKeys, to: sealed(rotated),
            recording: auditDraft(for: .assertionKeysRotate, on: .deployment))
        generation.advance()
    }

    // `sealed current ‖ sealed next`, and after a rotation `‖ time (8 bytes) ‖ sealed public key of the
    // previous one`. Each part is sealed for its own place, and the last also for its time, so that no part
    // can replace another.

    private func sealed(_ seeds: AssertionSeeds) -> [UInt8] {
        var bytes =
            seal(seeds.current, as: .assertionKey("current")) + seal(seeds.next, as: .assertionKey("next"))
        if let previous = seeds.previous {
            let time = UInt64(bitPattern: previous.replaced)
            bytes += (0..<8).map { UInt8(truncatingIfNeeded: time >> UInt64(56 - 8 * $0)) }
            bytes += seal(
                Secret(copying: previous.publicHalf.span), as: .assertionKey("previous", replaced: time))
        }
        return bytes
    }

    private func opened(_ stored: [UInt8]) throws(OperationalError) -> AssertionSeeds {
        let each = AssertionSeeds.sealedCount
        guard stored.count == 2 * each || stored.count == 3 * each + 8,
            let current = open(Array(stored[..<each]), as: .assertionKey("current")),
            let next = open(Array(stored[each..<2 * each]), as: .assertionKey("next"))
        else { throw Deployment.alteredSeeds }
        var seeds = AssertionSeeds(current: current, next: next)
        if stored.count > 2 * each {
            let time = stored[2 * each..<2 * each + 8].reduce(0) { $0 << 8 | UInt64($1) }
            let place = SealBinding.assertionKey("previous", replaced: time)
            guard let half = open(Array(stored[(2 * each + 8)...]), as: place) else {
                throw Deployment.alteredSeeds
            }
            seeds.previous = AssertionSeeds.Previous(
                publicHalf: half.withExposedBytes { span in span.indices.map { span[$0] } },
                replaced: Int64(bitPattern: time))
        }
        return seeds
    }

    private static var alteredSeeds: OperationalError {
        OperationalError(
            .failed, message: "assertion keys: their sealed value does not open; the row was altered")
    }
}

extension AssertionSeeds {
    /// Seals each part of a stored value anew; nil if one does not open.
    static func sealAgain(
        _ stored: [UInt8], by seal: (_ part: [UInt8], _ binding: SealBinding) -> [UInt8]?
    ) -> [UInt8]? {
        let each = sealedCount
        guard stored.count == 2 * each || stored.count == 3 * each + 8,
            let current = seal(Array(stored[..<each]), .assertionKey("current")),
            let next = seal(Array(stored[each..<2 * each]), .assertionKey("next"))
        else { return nil }
        guard stored.count > 2 * each else { return current + next }
        let time = Array(stored[2 * each..<2 * each + 8])
        let replaced = time.reduce(0) { $0 << 8 | UInt64($1) }
        guard
            let previous = seal(
                Array(stored[(2 * each + 8)...]), .assertionKey("previous", replaced: replaced))
        else { return nil }
        return current + next + time + previous
    }

    /// Seeds and public keys are 32 bytes each, so their sealed forms have the same length.
    fileprivate static let sealedCount = MasterKey.sealedCount(of: AnswerKey.seedCount)
}

extension SealBinding {
    fileprivate static func assertionKey(_ row: String, replaced: UInt64 = 0) -> SealBinding {
        SealBinding(kind: "assertion-key", row: row, epoch: replaced)
    }
}
