import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session that has ended on this device, and whose end the server has yet to be told: what one request
/// needs, and nothing with which the session could be renewed.
package struct PendingLogOut: Sendable {
    /// How many are kept; the oldest gives way.
    static let most = 8

    enum Credential: Sendable {
        /// The key that signs requests of this epoch.
        case device(epoch: UInt32, requestKey: Secret)
        case bearer(token: Secret)
    }

    package let session: SessionID
    let credential: Credential
    /// When the session ends by itself: whole Unix seconds.
    let until: Int64

    init(_ login: ActiveLogin) {
        session = login.id
        until = login.idle
        switch login.session {
        case .device(let session):
            credential = .device(epoch: session.latest.number, requestKey: session.latest.root.requestKey)
        case .bearer(let session): credential = .bearer(token: session.token)
        }
    }
}

extension PendingLogOut {
    /// Tags are permanent.
    private enum Tag {
        static let (session, until, epoch, requestKey, token): (UInt8, UInt8, UInt8, UInt8, UInt8) = (
            1, 2, 3, 4, 5
        )
    }

    private init?(_ parts: StateParts) {
        guard let id = parts.bytes(Tag.session).flatMap({ SessionID($0.span) }),
            let until = parts.number(Tag.until)
        else { return nil }
        (session, self.until) = (id, until)
        if let key = parts[Tag.requestKey],
            let epoch = parts.number(Tag.epoch).flatMap(UInt32.init(exactly:))
        {
            credential = .device(epoch: epoch, requestKey: key)
        } else if let token = parts[Tag.token] {
            credential = .bearer(token: token)
        } else {
            return nil
        }
    }

    private var contents: Secret {
        var parts = StateParts()
        parts.set(Tag.session, to: session.bytes)
        parts.set(Tag.until, until)
        switch credential {
        case .device(let epoch, let key):
            parts.set(Tag.epoch, Int64(epoch))
            parts[Tag.requestKey] = key
        case .bearer(let token): parts[Tag.token] = token
        }
        return parts.contents
    }

    /// Each with the index as its tag; those that cannot be read are left out, because a session that is not
    /// told ends by itself.
    static func all(in contents: Secret) -> [PendingLogOut] {
        guard let list = StateParts(contents) else { return [] }
        return (0..<UInt8(most)).compactMap { list[$0].flatMap { StateParts($0) }.flatMap { Self($0) } }
    }

    static func contents(of all: [PendingLogOut]) -> Secret? {
        guard !all.isEmpty else { return nil }
        var list = StateParts()
        for (index, each) in all.suffix(most).enumerated() { list[UInt8(index)] = each.contents }
        return list.contents
    }
}

/// Tells the server of sessions that ended here while it could not be reached. Source: docs/protocol.md,
/// "Sessions".
struct PendingLogOuts: Sendable {
    let installation: Installation
    let environment: ClientEnvironment

    enum Outcome: Sendable {
        case told
        /// The session had ended before.
        case hadEnded(RefusalNotice)
        /// The server was not reached, or cannot say so now.
        case later
    }

    /// Sends all of them, until one meets no server. Failures are not the caller's: a log-out is told again.
    func send() async {
        guard let all = try? environment.keeper.state().pendingLogOuts, !all.isEmpty else { return }
        for each in all {
            guard let outcome = try? await send(each) else { return }
            if case .later = outcome { return }
        }
    }

    /// Sends one, and forgets it once the server has said a word about it.
    func send(_ pending: PendingLogOut) async throws(ClientOperationError) -> Outcome {
        guard try environment.now() < pending.until else {
            try forget(pending)
            return .told
        }
        let outcome = try await ask(pending)
        if case .later = outcome { return outcome }
        try forget(pending)
        return outcome
    }

    private func ask(_ pending: PendingLogOut) async throws(ClientOperationError) -> Outcome {
        var hasCorrectedClock = false
        while true {
            let result = try await sendOnce(pending)
            guard let notice = result.notice else {
                return result.signer != nil || installation.connectionVouches ? .told : .later
            }
            if let told = notice.timeTold, !hasCorrectedClock {
                environment.correctClock(to: told)
                hasCorrectedClock = true
                continue
            }
            guard notice.isGenuine else { return .later }
            switch notice.code {
            case "session-ended": return .hadEnded(notice)
            case "unavailable", "timeout", "too-many-attempts", "stale", "replayed": return .later
            // A server that refuses it for another reason refuses it always; the session ends by itself.
            default: return .told
            }
        }
    }

    private func sendOnce(_ pending: PendingLogOut) async throws(ClientOperationError) -> VerifiedResponse {
        var draft = installation.draft("POST", path: "/logout", body: [:])
        var keys: [KeyID: SigningKey] = [:]
        let signer: Credentials
        switch pending.credential {
        case .device(let epoch, let requestKey):
            let (token, key) = (SessionToken(id: pending.session, epoch: epoch), SigningKey(requestKey))
            signer = Credentials(token, key: key, release: installation.release.keyID)
            keys[KeyID(token)] = key
        case .bearer(let token):
            _ = try installation.requiredProofForBearerSecrets()
            draft.fields.append(
                Draft.Field(name: "Authorization", value: "Bearer \(token.withExposedBytes { $0.text })"))
            signer = installation.release
        }
        environment.addIdempotencyKey(to: &draft)
        let time = try environment.now()
        let known = keys
        var result = try await SignedRequestSender(environment: environment).send(
            draft, as: signer, at: time, authority: installation.authorityKeys
        ) { _ in known }
        if installation.connectionVouches { result.acceptUnsignedRefusal() }
        environment.confirm(time, by: result)
        return result
    }

    private func forget(_ pending: PendingLogOut) throws(ClientOperationError) {
        try environment.keeper.change { state in
            let left = state.pendingLogOuts.filter { $0.session != pending.session }
            guard left.count != state.pendingLogOuts.count else { return .keep(()) }
            state.pendingLogOuts = left
            return .write(())
        }
    }
}
