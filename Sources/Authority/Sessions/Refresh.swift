import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session's key is renewed. Source: docs/protocol.md, "Refresh".
extension SessionLife {
    /// Once more where somebody else was first; each time the session has gone on, so more than a few is a fault.
    private static let mostRounds = 8

    /// Answers the successor of the epoch that is left: the same until that is used, whatever became of earlier answers.
    /// `now` is in whole Unix seconds.
    nonisolated(nonsending) package func refresh(
        _ request: RefreshRequest, at now: Int64
    ) async throws(Refusal) -> RenewedSession {
        try request.checkTime(at: now)
        guard var row = try read(request.token.id), case .device(let device) = row.credentials else {
            throw Refusal(.unknownKey, "refresh: no session \(request.token.id)")
        }
        let key = try requestKey(of: request.token.epoch, device, row)
        try request.check(device, key)
        guard row.app.description == request.release.app, row.platform.description == request.release.platform else {
            throw Refusal(.badSignature, "refresh: session \(row.id) is of \(row.app) for \(row.platform)")
        }
        // Only now: whoever could spend it before could take the client's attempt away.
        guard let entry = ReplayEntry(request, at: now) else { throw Refusal(.malformed, "refresh: token") }
        try await replay.insert(entry)
        for _ in 0..<SessionLife.mostRounds {
            try checkAlive(row, at: now)
            switch try await step(request, row, at: now) {
            case .answered(let row, let successor):
                guard let key else { break }
                return try renewed(request.token, row, successor, key, at: now)
            case .moved(let moved): row = moved
            }
        }
        throw Refusal(.unavailable, "refresh: session \(row.id) does not come to rest", retryAfter: 1)
    }

    private enum Step: Sendable {
        case answered(StoredSession, DeviceCredentials.Successor)
        /// Somebody else was first; this is how it is now.
        case moved(StoredSession)
    }

    /// What is judged here, on what was read, is judged again where it is written.
    nonisolated(nonsending) private func step(
        _ request: RefreshRequest, _ row: StoredSession, at now: Int64
    ) async throws(Refusal) -> Step {
        switch judge(request, row, at: now) {
        case .repeated(let successor): return .answered(row, successor)
        case .joined: return try await write(request, nil, at: now)
        case .first(let base):
            // Two scalar multiplications, which are no work for the writer's thread.
            var next = base
            next.successor = try successor(of: base, row, attempt: request.attempt)
            return try await write(request, next, at: now)
        case .settled: throw Refusal(.replayed, "refresh: session \(row.id) left epoch \(request.token.epoch) by it")
        case .reused: throw try await endReused(request, row, at: now)
        case .unknown: throw Refusal(.unknownKey, "refresh: session \(row.id) has no epoch \(request.token.epoch)")
        }
    }

    /// `offer` is what the row becomes if nobody else has made a successor meanwhile.
    nonisolated(nonsending) private func write(
        _ request: RefreshRequest, _ offer: DeviceCredentials?, at now: Int64
    ) async throws(Refusal) -> Step {
        let id = request.token.id
        let step = try await writer.write { (store) throws(Fault) -> Step? in
            guard let row = try store.session(id) else { return nil }
            guard row.end == nil, let next = next(request, row, offer, at: now) else { return .moved(row) }
            switch try store.swap(id, row.credentials, for: .device(next), by: request.release.id, at: now) {
            case .yes(let row): return next.successor.map { .answered(row, $0) } ?? .moved(row)
            case .moved(let row): return .moved(row)
            case .missing: return nil
            }
        }
        guard let step else { throw Refusal(.unknownKey, "refresh: session \(id) is gone") }
        if case .answered(let row, _) = step { live.take([row]) }
        return step
    }

    /// What is to be put in the row's place; nil where it has to be judged anew.
    private func next(
        _ request: RefreshRequest, _ row: StoredSession, _ offer: DeviceCredentials?, at now: Int64
    ) -> DeviceCredentials? {
        switch judge(request, row, at: now) {
        case .joined(let next): return next
        case .first(let base):
            var bare = offer
            bare?.successor = nil
            return bare == base ? offer : nil
        case .repeated, .settled, .reused, .unknown: return nil
        }
    }

    private func judge(_ request: RefreshRequest, _ row: StoredSession, at now: Int64) -> RefreshRule.Verdict {
        guard case .device(var device) = row.credentials else { return .unknown }
        // A first use counts from when it was seen, not from when it is written.
        if let ahead = live.shard(of: row.id).confirmation(of: row.id), ahead.epoch == device.epoch &+ 1,
            let confirmed = device.confirmed(at: ahead.at)
        {
            device = confirmed
        }
        return RefreshRule.judge(device, leaving: request.token.epoch, attempt: request.attempt, at: now)
    }

    /// Ends it, and says so; where it had just ended in another way, that is said.
    nonisolated(nonsending) private func endReused(
        _ request: RefreshRequest, _ row: StoredSession, at now: Int64
    ) async throws(Refusal) -> Refusal {
        let draft = deployment.recording(
            .sessionReuse, .session(row.id, of: row.app), [("epoch", .integer(Int64(request.token.epoch)))], by: .server
        )
        try await end(.one(row.id), SessionEnd(.reused, at: now), recording: draft)
        guard let end = try read(row.id)?.end else { return Refusal(.unknownKey, "refresh: session \(row.id) is gone") }
        return Refusal(end, of: row.id)
    }

    private func checkAlive(_ row: StoredSession, at now: Int64) throws(Refusal) {
        if let end = row.end { throw Refusal(end, of: row.id) }
        let idleEnd = row.used.later(by: try policy(of: row.app).sessionIdle)
        if idleEnd <= now { throw Refusal(SessionEnd(.expired, at: idleEnd), of: row.id) }
    }
}

/// What a client is told of a renewed session. Times are whole Unix seconds.
package struct RenewedSession: Sendable {
    /// Of the new epoch.
    package var token: SessionToken
    /// The server's ephemeral public half: 65 bytes on P-256.
    package var ephemeral: [UInt8]
    package var expires: Int64
    package var idleEnd: Int64
    /// Signs the answer: the request key of the epoch that is left, which both ends are known to have.
    package var signer: Credentials
}
