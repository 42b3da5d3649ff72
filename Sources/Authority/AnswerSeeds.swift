import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The seeds of the Ed25519 keys that sign the authority's own answers. Source: docs/protocol.md, "Keys that
/// clients know".
package struct AnswerSeeds: Sendable {
    package var current: Secret
    /// Signs nothing yet. Apps are built with its public half, so that they know it before it is used.
    package var next: Secret
    /// When the next key was made, whole Unix seconds. Releases with an earlier creation time were added
    /// without it.
    package var nextMade: Int64

    /// The public halves: what apps are built with.
    package func publicHalves() throws(OperationalError) -> (current: [UInt8], next: [UInt8]) {
        guard let current = AnswerKey.publicHalf(of: current), let next = AnswerKey.publicHalf(of: next)
        else { throw OperationalError(.failed, message: "answer keys: not Ed25519 seeds") }
        return (current, next)
    }
}

/// What a rotation does about live releases that were added before the next key was made.
package enum AnswerKeyRotation: Sendable {
    /// It is refused.
    case onlyIfEveryReleaseHasTheNextKey
    /// It is made: clients of those releases that were built without the next key believe no answer
    /// afterwards.
    case evenIfReleasesLackTheNextKey
}

extension Deployment {
    /// The seed that signs now; created at first use.
    package func answerKey() throws(OperationalError) -> Secret { try answerSeeds().current }

    /// Created at first use.
    package func answerSeeds() throws(OperationalError) -> AnswerSeeds { try answerSeeds(at: clock.estimate) }

    func answerSeeds(at now: Int64) throws(OperationalError) -> AnswerSeeds {
        try storedAnswerSeeds(at: now).seeds
    }

    private func storedAnswerSeeds(at now: Int64) throws(OperationalError) -> (
        seeds: AnswerSeeds, stored: [UInt8]
    ) {
        if let stored = try store.value(of: .answerKey) { return (try opened(stored), stored) }
        let fresh = AnswerSeeds(
            current: Secret(random: AnswerKey.seedCount), next: Secret(random: AnswerKey.seedCount),
            nextMade: try timeOfNext(at: now))
        // Of two processes that come here at once one succeeds, and both use its keys.
        let stored = try store.exchange(.answerKey, from: nil, to: sealed(fresh), with: [])
        return (try opened(stored), stored)
    }

    /// A time after the creation of every release, so that creation times tell the releases that were added
    /// before from those added afterwards, even within one second.
    private func timeOfNext(at now: Int64) throws(OperationalError) -> Int64 {
        let latest = try store.releases(of: nil).map(\.created).max()
        return latest.map { max(now, $0 + 1) } ?? now
    }

    /// The releases of which no client can be assumed to know the next key: those that are not retired for
    /// all devices, whose clients verify answers, and that were added before the key was made.
    package func releasesWithoutNextAnswerKey(at now: Int64) throws(OperationalError) -> [Release] {
        try releases(addedBefore: answerSeeds(at: now).nextMade, liveAt: now)
    }

    private func releases(
        addedBefore time: Int64, liveAt now: Int64
    ) throws(OperationalError) -> [Release] {
        try store.releases(of: nil).filter { release in
            release.scheme == .messageSignatures && release.created < time
                && !(release.retirement?.isComplete(at: now) ?? false)
        }
    }

    /// Makes the next key the current one, and a new key the next one. Fails, and changes nothing, if another
    /// process rotated at the same time: after two rotations no app would know the key.
    package func rotateAnswerKey(
        _ rotation: AnswerKeyRotation, at now: Int64
    ) throws(OperationalError) -> AnswerSeeds {
        try requireClock(for: "answer key")
        let (seeds, stored) = try storedAnswerSeeds(at: now)
        let lacking = try releases(addedBefore: seeds.nextMade, liveAt: now)
        if case .onlyIfEveryReleaseHasTheNextKey = rotation, !lacking.isEmpty {
            throw Deployment.refusal(of: lacking)
        }
        let rotated = AnswerSeeds(
            current: seeds.next, next: Secret(random: AnswerKey.seedCount), nextMade: try timeOfNext(at: now))
        let key = try rotated.publicHalves().current
        let details: [(name: String, value: JSONValue)] = [
            ("authority_key", .string(Base64.encode(key.span, as: .url))),
            ("releases_without_it", .integer(Int64(lacking.count))),
        ]
        let record = auditDraft(for: .answerKeyRotate, on: .deployment, details: details)
        guard try store.exchange(.answerKey, from: stored, to: sealed(rotated), recording: record) == .yes
        else {
            throw OperationalError(
                .failed, message: "answer key: it was rotated meanwhile; nothing was done")
        }
        generation.advance()
        return rotated
    }

    /// The most releases that a refusal names.
    private static let mostNamed = 10

    private static func refusal(of lacking: [Release]) -> OperationalError {
        let count = lacking.count == 1 ? "1 live release was" : "\(lacking.count) live releases were"
        var names = lacking.prefix(mostNamed).map { "\($0.app) \($0.version) on \($0.platform) (\($0.id))" }
        if lacking.count > mostNamed { names.append("and \(lacking.count - mostNamed) more") }
        return OperationalError(
            .failed,
            message:
                "answer key: \(count) added before the next key was made: \(names.joined(separator: ", ")); "
                + "clients built without `next_authority_key` would believe no answer any more. Retire the "
                + "releases first, or rotate with --force; nothing was changed")
    }

    // `sealed current ‖ sealed next ‖ time (8 bytes)`. Each part is sealed for its own place, and the second
    // also for its time, so that no part can replace another.

    private func sealed(_ seeds: AnswerSeeds) -> [UInt8] {
        seal(seeds.current, as: .answerKey) + seal(seeds.next, as: .nextAnswerKey(made: seeds.nextMade))
            + seeds.nextMade.bigEndianBytes
    }

    private func opened(_ stored: [UInt8]) throws(OperationalError) -> AnswerSeeds {
        guard let parts = AnswerSeeds.parts(of: stored), let current = open(parts.current, as: .answerKey),
            let next = open(parts.next, as: .nextAnswerKey(made: parts.made))
        else {
            throw OperationalError(
                .failed, message: "answer key: its sealed value does not open; the row was altered")
        }
        return AnswerSeeds(current: current, next: next, nextMade: parts.made)
    }
}

extension AnswerSeeds {
    /// The parts of a stored value; nil if it has another length.
    fileprivate static func parts(of stored: [UInt8]) -> (current: [UInt8], next: [UInt8], made: Int64)? {
        // All sealed seeds have one length.
        guard stored.count == 2 * sealedCount + 8 else { return nil }
        return (
            Array(stored[..<sealedCount]), Array(stored[sealedCount..<2 * sealedCount]),
            Int64(bigEndianBytes: stored.suffix(8))
        )
    }

    /// Seals each part of a stored value anew; nil if one does not open.
    static func sealAgain(
        _ stored: [UInt8], by seal: (_ part: [UInt8], _ binding: SealBinding) -> [UInt8]?
    ) -> [UInt8]? {
        guard let parts = parts(of: stored), let current = seal(parts.current, .answerKey),
            let next = seal(parts.next, .nextAnswerKey(made: parts.made))
        else { return nil }
        return current + next + parts.made.bigEndianBytes
    }

    private static let sealedCount = MasterKey.sealedCount(of: AnswerKey.seedCount)
}

extension AppRelease.Retirement {
    /// Whether no device is served any more.
    package func isComplete(at now: Int64) -> Bool {
        stage(at: now) == .retired && percent(at: now) == 100
    }
}

extension SealBinding {
    static let answerKey = SealBinding(kind: "answer-key", row: "answer-key")

    fileprivate static func nextAnswerKey(made: Int64) -> SealBinding {
        SealBinding(kind: "answer-key", row: "next", epoch: UInt64(bitPattern: made))
    }
}

/// A time beside sealed values.
extension Int64 {
    var bigEndianBytes: [UInt8] {
        let bits = UInt64(bitPattern: self)
        return (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) }
    }

    init(bigEndianBytes bytes: ArraySlice<UInt8>) {
        self.init(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}
