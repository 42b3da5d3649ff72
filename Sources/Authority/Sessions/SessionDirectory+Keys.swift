import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// Makes the cached session of a token at its first use: its root is unsealed then, not for a million
/// sessions at the start.
extension SessionDirectory {
    /// Seconds for which requests under the key before a renewal are still accepted. Source:
    /// docs/protocol.md, "Refresh".
    package static let grace: Int64 = 30

    /// Nil if there is no such session, or the key of that epoch is not stored.
    func cacheSession(
        of token: SessionToken, reads: StoreReads
    ) throws(OperationalError) -> CachedSession? {
        let shard = shard(of: token.id)
        let season = shard.cacheGeneration
        guard let known = shard.find(token.id), known.session.kind == .device,
            let verified = try verified(known, reads: reads)
        else { return nil }
        let (live, ahead) = (verified.session, known.confirmation)
        guard live.kind == .device,
            let edition = edition(of: token.epoch, record: live, confirmation: ahead)
        else { return nil }
        // The account is read, and for some epochs the root.
        try reads.require()
        guard let (sealed, stored) = try epoch(token.epoch, of: verified) else { return nil }
        guard let release = stored else {
            throw OperationalError(
                .failed, message: "session \(live.id): the store names no release of epoch \(token.epoch)")
        }
        let root = try root(sealed, of: token, in: appPlatforms[live.appPlatform].app)
        let cached = CachedSession(
            try session(
                live, confirmation: ahead, edition: edition, epoch: token.epoch,
                binding: .only(release)),
            key: SigningKey(root.requestKey))
        shard.cache(cached, of: token, from: live, confirmation: ahead, generation: season)
        return cached
    }

    /// A root in memory may be sealed under a master key that has been replaced since: then the store's.
    private func root(
        _ sealed: [UInt8], of token: SessionToken, in app: AppName
    ) throws(OperationalError) -> SessionRoot {
        do {
            return try deployment.root(sealed, of: token.id, in: app, epoch: token.epoch)
        } catch {
            guard case .device(let device)? = try reader.session(token.id)?.credentials,
                let stored = device.sealedRoot(of: token.epoch), stored != sealed
            else { throw error }
            return try deployment.root(stored, of: token.id, in: app, epoch: token.epoch)
        }
    }

    private func edition(
        of epoch: UInt32, record live: SessionRecord, confirmation ahead: SessionShard.Confirmation?
    ) -> Session.Edition? {
        let current = ahead?.epoch ?? live.epoch
        if epoch == current { return .current }
        if epoch &+ 1 == current, current > 0 { return .previous }
        return ahead == nil && live.hasSuccessor && epoch == current &+ 1 ? .offered : nil
    }

    /// An epoch's root and release. Memory holds the current epoch's, which most requests need; the others
    /// are read from the store.
    private func epoch(
        _ epoch: UInt32, of known: KnownSession
    ) throws(OperationalError) -> (sealedRoot: [UInt8], release: KeyID?)? {
        let live = known.session
        if epoch == live.epoch, let root = known.secret {
            return (root.bytes, appPlatforms[live.appPlatform].release)
        }
        guard case .device(let device)? = try reader.session(live.id)?.credentials,
            let root = device.sealedRoot(of: epoch)
        else { return nil }
        return (root, device.release(of: epoch))
    }

    /// The session of a bearer token, or with `epoch` of a device-bound one.
    func session(
        _ live: SessionRecord, confirmation ahead: SessionShard.Confirmation? = nil, edition: Session.Edition,
        epoch: UInt32 = 0, binding: Session.ReleaseBinding = .notApplicable
    ) throws(OperationalError) -> Session {
        let place = appPlatforms[live.appPlatform]
        guard let policy = try keys.policy(of: place.app), let account = try reader.account(live.account)
        else {
            throw OperationalError(
                .failed, message: "session \(live.id): its app or its account is not in the store")
        }
        // Only requests of these sessions come without a signature that names the release.
        let release = live.opening == .unsigned ? try reader.session(live.id)?.release : nil
        return Session(
            id: live.id, kind: live.kind, epoch: epoch, account: AccountIdentity(account),
            app: place.app.description,
            platform: place.platform.description, edition: edition, loginKind: live.opening, release: release,
            binding: binding,
            expires: expiry(of: live, confirmation: ahead, edition: edition, policy: policy),
            idleEnd: policy.sessionEnd(used: live.used, created: live.created), created: live.created,
            keyPossession: live.keyPossession, end: live.end)
    }

    private func expiry(
        of live: SessionRecord, confirmation ahead: SessionShard.Confirmation?, edition: Session.Edition,
        policy: Policy
    ) -> Int64 {
        let began = ahead?.at ?? live.moment
        switch (live.kind, edition) {
        case (.bearer, .previous): return 0
        case (.bearer, _): return live.moment
        case (.device, .current): return policy.tokenEnd(from: began, created: live.created)
        // The token's lifetime begins with its first use.
        case (.device, .offered): return .max
        case (.device, .previous): return began.later(by: SessionDirectory.grace)
        }
    }
}

extension DeviceCredentials {
    /// Nil for epochs whose root is not stored.
    func sealedRoot(of epoch: UInt32) -> [UInt8]? {
        if epoch == self.epoch { return sealedRoot }
        if epoch == self.epoch &+ 1 { return successor?.sealedRoot }
        return epoch &+ 1 == self.epoch ? sealedPreviousRoot : nil
    }

    /// The release of an epoch whose root is stored.
    func release(of epoch: UInt32) -> KeyID? {
        if epoch == self.epoch { return release }
        return epoch == self.epoch &+ 1 ? successor?.release : previousRelease
    }

    /// The credentials after the offered epoch was used; nil if none is offered.
    func confirmed(at now: Int64) -> DeviceCredentials? {
        guard let successor, epoch < .max else { return nil }
        var next = self
        next.epoch = epoch + 1
        next.epochBegan = now
        next.sealedPreviousRoot = sealedRoot
        next.sealedRoot = successor.sealedRoot
        (next.release, next.previousRelease) = (successor.release, release)
        next.attempts = successor.attempts
        next.successor = nil
        return next
    }
}

extension Policy {
    /// When a session ends unless it is renewed before, and at the latest `session-max` after its login.
    package func sessionEnd(used: Int64, created: Int64) -> Int64 {
        min(used.later(by: sessionIdle), sessionMax.map { created.later(by: $0) } ?? .max)
    }

    /// When a token of a session expires: never after the session.
    func tokenEnd(from began: Int64, created: Int64) -> Int64 {
        min(began.later(by: tokenLifetime), sessionMax.map { created.later(by: $0) } ?? .max)
    }
}

extension Int64 {
    /// `seconds` after this moment, or `Int64.max` on overflow.
    func later(by seconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(seconds)
        return overflow ? .max : sum
    }

    /// `seconds` before this moment, or `Int64.min` on overflow.
    func earlier(by seconds: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(seconds)
        return overflow ? .min : difference
    }
}
