import CountersignSchemes
import CountersignWire

/// Remembers what has been admitted. One insert if absent, atomic over all who share the guard.
package protocol ReplayGuard: Sendable {
    /// Returns once the entry is in, and will be found even after a crash. Refuses `replayed` where it was in already,
    /// `unavailable` where the guard cannot vouch for a request of that age.
    nonisolated(nonsending) func insert(_ entry: ReplayEntry) async throws(Refusal)

    /// Refuses `replayed` where the entry is in already, and changes nothing: a copy of a captured head is turned away
    /// before a body is held for it. That an entry is not found says nothing; ``insert(_:)`` decides.
    nonisolated(nonsending) func lookUp(_ entry: ReplayEntry) async throws(Refusal)
}

/// What makes a request the same as another: one key, one scheme, one replay key.
package struct ReplayEntry: Sendable {
    /// Within which the replay key is used once: a release's key id, or what stands for a session in all its epochs.
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

extension ReplayGuard {
    /// Lets a complete proof through once.
    nonisolated(nonsending) package func admit(_ proof: consuming CompleteProof) async throws(Refusal) -> Caller {
        // Schemes whose equal calls have equal signatures at any time have nothing that could be remembered.
        if let entry = ReplayEntry(proof.fresh) {
            if let shared = entry.sharedByAllKeys { try await insert(shared) }
            try await insert(entry)
        }
        return Caller(proof)
    }
}

extension ReplayEntry {
    /// sigv4's header form does not sign its key id: releases that share a secret could each be shown the
    /// same request. Its replay key is the MAC, 256 bits under the secret, so that entries of all keys can
    /// share one scope, and a caller without the secret cannot take the place of another caller's entry. Nil
    /// for schemes that sign the key id.
    ///
    /// The entry under the key id is kept beside it, as earlier versions have it: neither an upgrade nor
    /// going back forgets what was admitted.
    var sharedByAllKeys: ReplayEntry? {
        guard scheme == .sigV4, let all = ReplayEntry.allKeys else { return nil }
        return ReplayEntry(keyID: all, scheme: scheme, replayKey: replayKey, created: created, now: now)
    }

    /// No release has this id: it is reserved for tokens.
    private static let allKeys = KeyID("s_all-keys")

    /// Nil where nothing of the request could be remembered.
    init?(_ fresh: borrowing Fresh) {
        guard let key = fresh.replayKey else { return nil }
        keyID = fresh.scope
        scheme = fresh.release.scheme
        replayKey = key
        created = fresh.created ?? fresh.now
        now = fresh.now
    }
}
