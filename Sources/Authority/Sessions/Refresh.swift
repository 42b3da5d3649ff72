import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Refresh of a device-bound session. Source: docs/protocol.md, "Refresh".
extension SessionLifecycle {
    /// Rounds in which a refresh is judged again because another writer changed the row first. Each change
    /// moves the session on, so more rounds than these are a fault.
    private static let mostRounds = 8

    /// Answers with the successor of the epoch that the client leaves: the same successor until it is used,
    /// even if earlier answers were lost. `now` is in whole Unix seconds.
    package func refresh(
        _ request: RefreshRequest, at now: Int64
    ) async throws(Refusal) -> RenewedSession {
        try request.checkTime(at: now)
        guard var row = try await read(request.token.id), case .device(let device) = row.credentials else {
            throw Refusal(.unknownKey, detail: "refresh: no session \(request.token.id)")
        }
        let key = try requestKey(of: request.token.epoch, device: device, row: row)
        try request.check(against: device, requestKey: key)
        guard row.app.description == request.release.app, row.platform.description == request.release.platform
        else {
            throw Refusal(
                .badSignature, detail: "refresh: session \(row.id) is of \(row.app) for \(row.platform)")
        }
        // The replay entry is inserted after the signature check, because an unverified request could
        // otherwise use up the client's attempt.
        guard let entry = ReplayEntry(request, at: now) else {
            throw Refusal(.malformed, detail: "refresh: token")
        }
        do throws(Refusal) {
            try await replay.insert(entry)
        } catch {
            guard error.code == .replayed else { throw error }
            throw refusal(error, of: request, progressOf: row)
        }
        guard request.purpose == .reportReuse || refreshes.admit(row.id, at: now) else {
            throw Refusal(
                .unavailable, detail: "refresh: session \(row.id) refreshes more often than any client does",
                retryAfter: 1)
        }
        for _ in 0..<SessionLifecycle.mostRounds {
            try checkAlive(row, at: now)
            switch try await step(request, row: row, at: now) {
            case .answered(let row, let successor):
                guard let key else { break }
                return try renewedSession(
                    leaving: request.token, row: row, successor: successor, key: key, at: now)
            case .superseded(let row):
                let refusal = Refusal(
                    .replayed,
                    detail: "refresh: session \(row.id): a copy that is older than what was seen since, or "
                        + "whose successor of epoch \(request.token.epoch) is in use")
                throw self.refusal(refusal, of: request, progressOf: row)
            case .moved(let moved): row = moved
            }
        }
        throw Refusal(.unavailable, detail: "refresh: session \(row.id) does not come to rest", retryAfter: 1)
    }

    private enum Step: Sendable {
        case answered(StoredSession, DeviceCredentials.Successor)
        /// Nothing changes for the client; this is the current row.
        case superseded(StoredSession)
        /// Another writer changed the row first; this is the current row.
        case moved(StoredSession)
    }

    /// Judges the row that was read; ``write(_:offer:at:)`` judges again on the writer's thread.
    private func step(
        _ request: RefreshRequest, row: StoredSession, at now: Int64
    ) async throws(Refusal) -> Step {
        switch judge(request, row: row, at: now) {
        case .recorded, .superseded(.some): return try await write(request, offer: nil, at: now)
        case .first(let base):
            // Two scalar multiplications, too slow for the writer's thread.
            var next = base
            next.successor = try successor(of: base, row: row, for: request)
            return try await write(request, offer: next, at: now)
        case .superseded(nil): return .superseded(row)
        case .reused: throw try await endReused(request, row: row, at: now)
        case .unknown:
            throw Refusal(
                .unknownKey, detail: "refresh: session \(row.id) has no epoch \(request.token.epoch)")
        }
    }

    /// `offer` is what the row becomes if no other refresh has made a successor meanwhile.
    private func write(
        _ request: RefreshRequest, offer: DeviceCredentials?, at now: Int64
    ) async throws(Refusal) -> Step {
        let id = request.token.id
        let step = try await writer.write { (store) throws(OperationalError) -> Step? in
            guard let row = try store.session(id) else { return nil }
            guard row.end == nil, let change = change(by: request, row: row, offer: offer, at: now) else {
                return .moved(row)
            }
            // A copy that changes nothing for the client is no use of the session.
            let (release, used) = change.isRenewal ? (request.release.id, now) : (nil, row.used)
            switch try store.swap(id, from: row.credentials, to: .device(change.next), by: release, at: used)
            {
            case .yes(let row):
                guard change.isRenewal else { return .superseded(row) }
                return change.next.successor.map { .answered(row, $0) } ?? .moved(row)
            case .moved(let row): return .moved(row)
            case .missing: return nil
            }
        }
        guard let step else { throw Refusal(.unknownKey, detail: "refresh: session \(id) is gone") }
        switch step {
        case .answered(let row, _), .superseded(let row): directory.apply([row])
        case .moved: break
        }
        return step
    }

    /// The credentials to store, and whether they renew the session; nil if the row has changed and must be
    /// judged again.
    private func change(
        by request: RefreshRequest, row: StoredSession, offer: DeviceCredentials?, at now: Int64
    ) -> (next: DeviceCredentials, isRenewal: Bool)? {
        switch judge(request, row: row, at: now) {
        case .recorded(let next): return (next, true)
        case .superseded(let next): return next.map { ($0, false) }
        case .first(let base):
            var bare = offer
            bare?.successor = nil
            return bare == base ? offer.map { ($0, true) } : nil
        case .reused, .unknown: return nil
        }
    }

    /// The same refusal with the session's progress, as far as it is known here.
    private func refusal(
        _ refusal: Refusal, of request: RefreshRequest, progressOf row: StoredSession
    ) -> Refusal {
        guard case .device(let stored) = row.credentials else { return refusal }
        let device = withFirstUse(stored, of: row.id)
        var refusal = refusal
        refusal.refreshProgress = Refusal.RefreshProgress(
            counter: device.counter, epoch: device.epoch, transcript: request.transcriptDigest)
        return refusal
    }

    private func judge(_ request: RefreshRequest, row: StoredSession, at now: Int64) -> RefreshRule.Verdict {
        guard case .device(let device) = row.credentials else { return .unknown }
        let statement = RefreshRule.Statement(
            epoch: request.token.epoch, attempt: request.attempt, counter: request.counter,
            digest: request.transcriptDigest, purpose: request.purpose, release: request.release.id)
        return RefreshRule.judge(withFirstUse(device, of: row.id), by: statement, at: now)
    }

    /// The credentials after a first use that the row does not show yet. It counts from the time at which the
    /// gate saw it, not from its write.
    private func withFirstUse(_ device: DeviceCredentials, of id: SessionID) -> DeviceCredentials {
        guard let ahead = directory.shard(of: id).confirmation(of: id), ahead.epoch == device.epoch &+ 1
        else { return device }
        return device.confirmed(at: ahead.at) ?? device
    }

    /// Ends the session as reused and returns the refusal; if the session had just ended for another
    /// reason, the refusal gives that reason.
    private func endReused(
        _ request: RefreshRequest, row: StoredSession, at now: Int64
    ) async throws(Refusal) -> Refusal {
        let draft = deployment.auditDraft(
            for: .sessionReuse, on: .session(row.id, of: row.app),
            details: [
                ("epoch", .integer(Int64(request.token.epoch))),
                ("counter", .integer(request.counter)),
                ("purpose", .string(request.purpose.rawValue)),
            ], by: .server
        )
        try await end(.one(row.id), with: SessionTermination(.reused, at: now), recording: draft)
        guard let end = try await read(row.id)?.end else {
            return Refusal(.unknownKey, detail: "refresh: session \(row.id) is gone")
        }
        return Refusal(end, of: row.id)
    }

    private func checkAlive(_ row: StoredSession, at now: Int64) throws(Refusal) {
        if let end = row.end { throw Refusal(end, of: row.id) }
        let idleEnd = try policy(of: row.app).sessionEnd(used: row.used, created: row.created)
        if idleEnd <= now { throw Refusal(ofExpired: row.id, at: idleEnd) }
    }
}

/// The answer to a refresh. Times are whole Unix seconds.
package struct RenewedSession: Sendable {
    /// Of the new epoch.
    package var token: SessionToken
    /// The server's ephemeral public key: 65 bytes on P-256.
    package var ephemeral: [UInt8]
    package var expires: Int64
    package var idleEnd: Int64
    /// Signs the answer with the request key of the epoch that is left, which both sides are known to have.
    package var signer: Credentials
}

/// The keys on the server's side of a refresh. A failure here is an operational error and makes only this
/// session unavailable.
extension SessionLifecycle {
    /// Nil for an epoch whose root is no longer stored.
    func requestKey(
        of epoch: UInt32, device: DeviceCredentials, row: StoredSession
    ) throws(Refusal) -> Secret? {
        guard let sealed = device.sealedRoot(of: epoch) else { return nil }
        return try unavailableOnFault { () throws(OperationalError) in
            try deployment.root(sealed, of: row.id, in: row.app, epoch: epoch)
        }.requestKey
    }

    /// Derives the next root from this one and from the agreement of the device's key with an ephemeral
    /// key. The ephemeral private key is discarded here, so that a copy of the stored roots does not give
    /// the later ones.
    func successor(
        of device: DeviceCredentials, row: StoredSession, for request: RefreshRequest
    ) throws(Refusal) -> DeviceCredentials.Successor {
        try self.unavailableOnFault { () throws(OperationalError) in
            let root = try deployment.root(device.sealedRoot, of: row.id, in: row.app, epoch: device.epoch)
            let (ephemeral, agreed) = try SessionLifecycle.agree(with: device.agreementKey, of: row.id)
            let sealed = deployment.seal(
                root.next(agreed: agreed), of: row.id, in: row.app, epoch: device.epoch + 1)
            return DeviceCredentials.Successor(
                sealedRoot: sealed, ephemeral: ephemeral, release: request.release.id,
                attempts: [request.attempt])
        }
    }

    private static func agree(
        with point: [UInt8], of id: SessionID
    ) throws(OperationalError) -> (ephemeral: [UInt8], agreed: Secret) {
        guard let device = P256Point(point), let ephemeral = try? AgreementKey(),
            let agreed = try? ephemeral.sharedSecret(with: device)
        else {
            throw OperationalError(.failed, message: "session \(id): no key can be agreed with the device's")
        }
        return (ephemeral.publicPoint.bytes, agreed)
    }

    func renewedSession(
        leaving left: SessionToken, row: StoredSession, successor: DeviceCredentials.Successor, key: Secret,
        at now: Int64
    ) throws(Refusal) -> RenewedSession {
        let policy = try policy(of: row.app)
        return RenewedSession(
            token: SessionToken(id: left.id, epoch: left.epoch + 1), ephemeral: successor.ephemeral,
            expires: policy.tokenEnd(from: now, created: row.created),
            idleEnd: policy.sessionEnd(used: row.used, created: row.created),
            signer: Credentials(keyID: KeyID(left), key: SigningKey(key)))
    }

    package func read(_ id: SessionID) async throws(Refusal) -> StoredSession? {
        try await threads.run { [reader] () throws(OperationalError) in try reader.session(id) }
    }

    package func policy(of app: AppName) throws(Refusal) -> Policy {
        try unavailableOnFault { () throws(OperationalError) in
            guard let policy = try directory.keys.policy(of: app) else {
                throw OperationalError(.failed, message: "app \(app): there is none")
            }
            return policy
        }
    }

    /// Translates an operational error to `unavailable`, which says nothing about the session: the client
    /// asks again.
    func unavailableOnFault<Result>(_ body: () throws(OperationalError) -> Result) throws(Refusal) -> Result {
        do {
            return try body()
        } catch {
            throw Refusal(.unavailable, detail: error.message, retryAfter: 5)
        }
    }
}
