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
}

/// What identifies a request for replay detection: the key id, the scheme and the replay key.
package struct ReplayEntry: Sendable {
    /// The scope in which a replay key may be used once: a release's key id, or the part of a session's token
    /// that is the same in all epochs.
    package let keyID: KeyID
    package let scheme: SchemeName
    package let replayKey: Claim.ReplayKey
    /// Whole Unix seconds.
    package let created: Int64
    package let now: Int64

    package init(keyID: KeyID, scheme: SchemeName, replayKey: Claim.ReplayKey, created: Int64, now: Int64) {
        self.keyID = keyID
        self.scheme = scheme
        self.replayKey = replayKey
        self.created = created
        self.now = now
    }
}

/// A complete proof whose entries are inserted, once each. Only the last insertion admits the request.
struct ReplayAdmission: ~Copyable, Sendable {
    private let proof: CompleteProof
    /// Nil for a scheme that signs neither a time nor a nonce: there is nothing to insert.
    private var entry: ReplayEntry?
    /// The entry that is inserted before `entry`; nil if there is none, or once it is inserted.
    private var shared: ReplayEntry?

    init(_ proof: consuming CompleteProof) {
        entry = ReplayEntry(proof.fresh)
        shared = entry?.sharedByAllKeys
        self.proof = proof
    }

    /// Inserts what needs no waiting; false if an entry is left for ``insert(into:)``.
    @inline(__always)
    mutating func insertIfReady(into replay: any ReplayGuard) throws(Refusal) -> Bool {
        if let shared {
            guard try replay.insertIfReady(shared) else { return false }
            self.shared = nil
        }
        if let entry {
            guard try replay.insertIfReady(entry) else { return false }
            self.entry = nil
        }
        return true
    }

    mutating func insert(into replay: any ReplayGuard) async throws(Refusal) {
        if let shared {
            try await replay.insert(shared)
            self.shared = nil
        }
        if let entry {
            try await replay.insert(entry)
            self.entry = nil
        }
    }

    /// The proof. Call it once nothing is left to insert.
    consuming func admitted() -> CompleteProof { proof }
}

extension ReplayEntry {
    /// For schemes that do not sign their key id: one request could be replayed to each release that shares
    /// the secret. Their replay key is the MAC, 256 bits under the secret, so that entries of all keys can
    /// share one scope, and a caller without the secret cannot take the place of another caller's entry. Nil
    /// for schemes that sign the key id.
    ///
    /// The entry under the key id is inserted as well, as in earlier versions: neither an upgrade nor a
    /// downgrade forgets an admitted request.
    var sharedByAllKeys: ReplayEntry? {
        guard scheme.traits.replayDetection == .acrossKeys, let all = ReplayEntry.allKeys else { return nil }
        return ReplayEntry(keyID: all, scheme: scheme, replayKey: replayKey, created: created, now: now)
    }

    /// No release has this id: it is reserved for tokens.
    private static let allKeys = KeyID("s_all-keys")

    /// Nil if the proof has no replay key.
    init?(_ fresh: borrowing FreshProof) {
        guard let key = fresh.replayKey else { return nil }
        keyID = fresh.scope
        scheme = fresh.release.scheme
        replayKey = key
        created = fresh.created ?? fresh.now
        now = fresh.now
    }
}

/// A 96-bit fingerprint of an entry. The hash has its own key for each file, so a caller can neither choose
/// an entry's place in the table nor make two entries collide.
struct ReplayFingerprint: Equatable {
    /// The low bits choose the shard and the bucket.
    let place: UInt64
    let tail: UInt32

    init(of entry: ReplayEntry, hash: KeyedHash) {
        // The lengths come first, so that no two entries have the same encoding.
        let key = entry.replayKey.span
        let id = entry.keyID.bytes
        var text = InlineArray<256, UInt8>(repeating: 0)
        text[0] = UInt8(truncatingIfNeeded: key.count)
        text[1] = UInt8(truncatingIfNeeded: id.count)
        text[2] = entry.scheme.traits.replayNumber
        for index in 0..<key.count { text[3 + index] = key[index] }
        for index in 0..<id.count { text[3 + key.count + index] = id[index] }
        let (low, high) = hash.hash(text.span.extracting(0..<3 + key.count + id.count))
        place = low
        tail = UInt32(truncatingIfNeeded: high)
    }

    init(place: UInt64, tail: UInt32) {
        self.place = place
        self.tail = tail
    }

    var shard: Int { Int(place & UInt64(ShardLocks.count - 1)) }
}
