import CountersignGate
import CountersignWire

/// Sessions by the tokens that their clients send. A token names its session, so nothing is kept to find it by.
extension LiveSessions {
    nonisolated(nonsending) package func session(bearing token: Span<UInt8>) async throws(Fault) -> Session? {
        try find(bearing: token)
    }

    /// The same, without suspending.
    package func find(bearing text: Span<UInt8>) throws(Fault) -> Session? {
        try follow()
        guard let token = BearerToken(text) else { return nil }
        let shard = shard(of: token.session)
        let season = shard.season
        guard let (live, ahead) = shard.find(token.session), let edition = live.edition(ofTokenHash: token.hash.span)
        else { return nil }
        guard edition != .previous else { return try session(live, edition: edition) }
        // Bearers have one epoch, as far as what is kept ready is concerned.
        let place = SessionToken(id: token.session, epoch: 0)
        if let entry = shard.hot(place) { return entry.session }
        let entry = HotSessions.Entry(place, try session(live, edition: ahead == nil ? edition : .current), nil)
        shard.keep(entry, of: live, ahead, since: season)
        return entry.session
    }

    /// Whether there is such a session, over or not: what is made up is told from it without waiting for the writer.
    func knows(_ id: SessionID) throws(Fault) -> Bool {
        try follow()
        return shard(of: id).find(id) != nil
    }

    /// Which epoch a use of this session confirms. A bearer's token that was renewed meanwhile confirms nothing.
    func offeredEpoch(of session: Session) -> UInt32? {
        guard session.kind == .bearer else { return session.epoch }
        guard let (live, _) = shard(of: session.id).find(session.id), live.moment == session.expires else { return nil }
        return live.epoch &+ 1
    }
}

extension BearerCredentials {
    /// Another time of issue is another edition of the tokens.
    var edition: UInt32 { UInt32(truncatingIfNeeded: issued) }
}

extension StoredSession.Credentials {
    /// As they are once `epoch`, which was offered, has been used; nil where it is not offered any more.
    func confirmed(_ epoch: UInt32, at now: Int64) -> StoredSession.Credentials? {
        switch self {
        case .device(let device):
            guard device.epoch &+ 1 == epoch else { return nil }
            return device.confirmed(at: now).map { .device($0) }
        case .bearer(var bearer):
            guard bearer.edition &+ 1 == epoch, bearer.previousLoginTokenHash != nil else { return nil }
            bearer.previousLoginTokenHash = nil
            return .bearer(bearer)
        }
    }
}
