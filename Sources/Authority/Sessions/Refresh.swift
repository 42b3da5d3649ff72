import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session's key is renewed. Source: docs/protocol.md, "Refresh".
extension SessionLife {
    /// Once more for each time that somebody else was first; more than that is no race but a fault.
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
        case .joined(let next): return try await put(next, in: row, at: now)
        case .first(let base):
            var next = base
            next.successor = try successor(of: base, row, attempt: request.attempt)
            return try await put(next, in: row, at: now)
        case .settled: throw Refusal(.replayed, "refresh: session \(row.id) left epoch \(request.token.epoch) by it")
        case .reused: throw try await endReused(request, row, at: now)
        case .unknown: throw Refusal(.unknownKey, "refresh: session \(row.id) has no epoch \(request.token.epoch)")
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

    nonisolated(nonsending) private func put(
        _ next: DeviceCredentials, in row: StoredSession, at now: Int64
    ) async throws(Refusal) -> Step {
        let swapped = try await writer.write { (store) throws(Fault) in
            try store.swap(row.id, row.credentials, for: .device(next), at: now)
        }
        switch swapped {
        case .yes(let row):
            live.take([row])
            guard let successor = next.successor else { return .moved(row) }
            return .answered(row, successor)
        case .moved(let row): return .moved(row)
        case .missing: throw Refusal(.unknownKey, "refresh: session \(row.id) is gone")
        }
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
