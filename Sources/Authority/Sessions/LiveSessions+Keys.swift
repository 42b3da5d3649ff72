import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// How a token's session is worked out when it is first used: its root is unsealed then, and not for a million at once.
extension LiveSessions {
    /// Seconds for which requests under a renewed key's predecessor are let in. Source: docs/protocol.md, "Refresh".
    package static let grace: Int64 = 30

    /// Nil where there is no such session, or the key of that epoch is not kept.
    func warmUp(_ token: SessionToken) throws(Fault) -> HotSessions.Entry? {
        let shard = shard(of: token.id)
        let season = shard.season
        guard let (live, ahead) = shard.find(token.id), live.kind == .device,
            let edition = edition(of: token.epoch, live, ahead)
        else { return nil }
        guard let sealed = try sealedRoot(of: token.epoch, live) else { return nil }
        let root = try deployment.root(sealed, of: token.id, in: places[live.place].app, epoch: token.epoch)
        let entry = HotSessions.Entry(
            token, try session(live, ahead, edition: edition, epoch: token.epoch), SigningKey(root.requestKey))
        shard.keep(entry, of: live, ahead, since: season)
        return entry
    }

    private func edition(
        of epoch: UInt32, _ live: LiveSession, _ ahead: SessionShard.Confirmation?
    ) -> Session.Edition? {
        let current = ahead?.epoch ?? live.epoch
        if epoch == current { return .current }
        if epoch &+ 1 == current, current > 0 { return .previous }
        return ahead == nil && live.hasSuccessor && epoch == current &+ 1 ? .offered : nil
    }

    /// In memory lies the one that most requests need; its neighbours are read.
    private func sealedRoot(of epoch: UInt32, _ live: LiveSession) throws(Fault) -> [UInt8]? {
        if epoch == live.epoch { return live.sealedRoot }
        guard case .device(let device)? = try reader.session(live.id)?.credentials else { return nil }
        return device.sealedRoot(of: epoch)
    }

    /// A bearer's, or with `epoch` a device's.
    func session(
        _ live: LiveSession, _ ahead: SessionShard.Confirmation? = nil, edition: Session.Edition, epoch: UInt32 = 0
    ) throws(Fault) -> Session {
        let place = places[live.place]
        guard let policy = try keys.policy(of: place.app), let account = try reader.account(live.account) else {
            throw Fault(.failed, "session \(live.id): its app or its account is not in the store")
        }
        // Requests of other sessions name the release that calls.
        let release = live.opening == .unsigned ? try reader.session(live.id)?.release : nil
        return Session(
            id: live.id, kind: live.kind, epoch: epoch, account: AccountIdentity(account), app: place.app.description,
            platform: place.platform.description, edition: edition, opening: live.opening, release: release,
            expires: expires(live, ahead, edition, policy), idleEnd: live.used.later(by: policy.sessionIdle),
            end: live.end)
    }

    private func expires(
        _ live: LiveSession, _ ahead: SessionShard.Confirmation?, _ edition: Session.Edition, _ policy: Policy
    ) -> Int64 {
        let began = ahead?.at ?? live.moment
        switch (live.kind, edition) {
        case (.bearer, .previous): return 0
        case (.bearer, _): return live.moment
        case (.device, .current): return began.later(by: policy.tokenLifetime)
        // Its time begins when it is first used.
        case (.device, .offered): return .max
        case (.device, .previous): return began.later(by: LiveSessions.grace)
        }
    }
}

extension DeviceCredentials {
    /// Nil for epochs whose root is not kept.
    func sealedRoot(of epoch: UInt32) -> [UInt8]? {
        if epoch == self.epoch { return sealedRoot }
        if epoch == self.epoch &+ 1 { return successor?.sealedRoot }
        return epoch &+ 1 == self.epoch ? sealedPreviousRoot : nil
    }

    /// As they are once the epoch that was offered has been used; nil where none is.
    func confirmed(at now: Int64) -> DeviceCredentials? {
        guard let successor, epoch < .max else { return nil }
        var next = self
        next.epoch = epoch + 1
        next.epochBegan = now
        next.sealedPreviousRoot = sealedRoot
        next.sealedRoot = successor.sealedRoot
        // Those that led to epochs before are remembered with them, while there is room.
        next.attempts = DeviceCredentials.newest(successor.attempts, before: attempts)
        next.successor = nil
        return next
    }
}

extension Int64 {
    /// `seconds` after this moment; the last one there is, where that is beyond.
    func later(by seconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(seconds)
        return overflow ? .max : sum
    }
}
