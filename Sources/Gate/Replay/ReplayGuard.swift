import CountersignSchemes
import CountersignWire

/// Remembers what has been admitted. One insert if absent, atomic over all who share the guard.
package protocol ReplayGuard: Sendable {
    /// Returns once the entry is in, and will be found even after a crash. Refuses `replayed` where it was in already,
    /// `unavailable` where the guard cannot vouch for a request of that age.
    nonisolated(nonsending) func insert(_ entry: ReplayEntry) async throws(Refusal)
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
    /// Lets a fresh proof through once.
    nonisolated(nonsending) package func admit(_ fresh: consuming Fresh) async throws(Refusal) -> Caller {
        // Schemes whose equal calls have equal signatures at any time have nothing that could be remembered.
        if let key = fresh.replayKey {
            try await insert(ReplayEntry(fresh, key))
        }
        return Caller(fresh)
    }
}

extension ReplayEntry {
    fileprivate init(_ fresh: borrowing Fresh, _ key: Claim.ReplayKey) {
        keyID = fresh.scope
        scheme = fresh.release.scheme
        replayKey = key
        created = fresh.created ?? fresh.now
        now = fresh.now
    }
}
