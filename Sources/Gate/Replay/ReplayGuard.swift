import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Remembers admitted requests. Insertion is one atomic insert-if-absent for all users of the guard.
package protocol ReplayGuard: Sendable {
    /// Returns once the entry is stored so that it survives a crash. Refuses as `replayed` if the entry was
    /// present, and as `unavailable` if the guard may have forgotten requests of that age.
    func insert(_ entry: ReplayEntry) async throws(Refusal)

    /// The same, if that needs no waiting. False if it does: then nothing was inserted, and ``insert(_:)``
    /// decides.
    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool

    /// Refuses as `replayed` if the entry is known to be present, and changes nothing: a replayed head is
    /// refused before its body is buffered. Never waits. Passing proves nothing; an insertion decides.
    func lookUp(_ entry: ReplayEntry) throws(Refusal)

    /// Fetches the entry's place into the processor's cache while the signature is verified, and returns what
    /// it has computed for that, for ``ReplayEntry/fingerprint``; nil if the guard has no place in memory.
    /// Changes nothing, and proves nothing.
    func prefetch(_ entry: ReplayEntry) -> ReplayFingerprint?
}

extension ReplayGuard {
    package func prefetch(_ entry: ReplayEntry) -> ReplayFingerprint? { nil }
}

/// What identifies a request for replay detection: the key id, the scheme and the replay key.
package struct ReplayEntry: Sendable {
    /// The scope in which a replay key may be used once: a release's key id, the part of a session's token
    /// that is the same in all epochs, or ``allKeys``.
    package let keyID: KeyID
    package let scheme: SchemeName
    package let replayKey: Claim.ReplayKey
    /// Whole Unix seconds.
    package let created: Int64
    package let now: Int64
    /// The entry's fingerprint by the guard that it is inserted into, if that has computed it already.
    private(set) var fingerprint: ReplayFingerprint?

    package init(keyID: KeyID, scheme: SchemeName, replayKey: Claim.ReplayKey, created: Int64, now: Int64) {
        self.keyID = keyID
        self.scheme = scheme
        self.replayKey = replayKey
        self.created = created
        self.now = now
    }
}

/// A complete proof whose entry is yet to be inserted.
struct ReplayAdmission: ~Copyable, Sendable {
    private let proof: CompleteProof

    init(_ proof: consuming CompleteProof) { self.proof = proof }

    /// Inserts if that needs no waiting; false if it is left to ``insert(into:)``.
    @inline(__always)
    borrowing func insertIfReady(into replay: any ReplayGuard) throws(Refusal) -> Bool {
        // A scheme that signs neither a time nor a nonce has nothing to insert.
        guard let entry = ReplayEntry(proof.fresh) else { return true }
        return try replay.insertIfReady(entry)
    }

    borrowing func insert(into replay: any ReplayGuard) async throws(Refusal) {
        guard let entry = ReplayEntry(proof.fresh) else { return }
        try await replay.insert(entry)
    }

    /// The proof. Call it once nothing is left to insert.
    consuming func admitted() -> CompleteProof { proof }
}

extension ReplayEntry {
    /// The scope of schemes that do not sign their key id: one request could be replayed to each release that
    /// shares the secret. Their replay key is the MAC, 256 bits under the secret, so that the entries of all
    /// keys can share one scope, and a caller without the secret cannot take the place of another caller's
    /// entry. No release has this id: it is reserved for tokens.
    static let allKeys = KeyID("s_all-keys")

    /// Nil if the proof has no replay key.
    init?(_ fresh: borrowing FreshProof) {
        guard
            let key = fresh.claim.replayKey(under: fresh.release.schemePolicy.replay, isSafe: fresh.isSafe)
        else { return nil }
        keyID = fresh.claim.replayScope(of: fresh.release, session: fresh.session)
        scheme = fresh.release.scheme
        replayKey = key
        created = fresh.created ?? fresh.now
        now = fresh.now
        fingerprint = fresh.fingerprint
    }

    /// The entry that the claim would insert if its signature verified; nil if the claim has no replay key.
    /// There is one for an unknown key as well, so that its refusal takes at least as long as that of a known
    /// one.
    init?(of claim: Claim, under key: VerificationKey, isSafe: Bool, at now: Int64) {
        let release = key.release
        guard let replayKey = claim.replayKey(under: release?.schemePolicy.replay ?? .strict, isSafe: isSafe)
        else { return nil }
        self.init(
            keyID: release.map { claim.replayScope(of: $0, session: key.session) } ?? claim.keyID,
            scheme: claim.scheme, replayKey: replayKey,
            created: release.flatMap { claim.created.instant($0.schemePolicy) } ?? now, now: now)
    }

    /// The entry with its fingerprint, whose place in the guard's memory is fetched.
    func prefetched(by replay: any ReplayGuard) -> ReplayEntry {
        var entry = self
        entry.fingerprint = replay.prefetch(self)
        return entry
    }
}

extension ReplayEntry {
    /// 128 bits that identify the entry, under the hash's key.
    @inline(__always)
    package func fingerprint(by hash: KeyedHash) -> (low: UInt64, high: UInt64) {
        let key = replayKey.span
        let id = keyID.bytes
        let count = 3 + key.count + id.count
        // Both have a longest length, so that the text fits.
        var text = InlineArray<136, UInt8>(repeating: 0)
        withUnsafeMutableBytes(of: &text) { text in
            // The lengths come first, so that no two entries have the same encoding.
            text[0] = UInt8(truncatingIfNeeded: key.count)
            text[1] = UInt8(truncatingIfNeeded: id.count)
            text[2] = scheme.traits.replayNumber
            key.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: text[3...]).copyMemory(from: $0) }
            id.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: text[(3 + key.count)...]).copyMemory(from: $0)
            }
        }
        return hash.hash(text.span.extracting(0..<count))
    }
}

/// A 96-bit fingerprint of an entry. The hash has its own key for each file, so a caller can neither choose
/// an entry's place in the table nor make two entries collide.
package struct ReplayFingerprint: Equatable, Sendable {
    /// The low bits choose the shard and the bucket.
    let place: UInt64
    let tail: UInt32

    init(of entry: ReplayEntry, hash: KeyedHash) {
        let (low, high) = entry.fingerprint(by: hash)
        place = low
        tail = UInt32(truncatingIfNeeded: high)
    }

    init(place: UInt64, tail: UInt32) {
        self.place = place
        self.tail = tail
    }

    var shard: Int { Int(place & UInt64(ShardLocks.count - 1)) }
}
