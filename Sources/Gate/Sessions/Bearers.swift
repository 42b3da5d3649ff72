import CountersignSchemes
import CountersignWire

/// Whose token does the request bear? Only clients without OPAQUE send one: it is looked up by its hash, and what the
/// backend issued itself is not read. Source: docs/protocol.md, "Bearer sessions".
struct Bearers: Sendable {
    private let source: any SessionSource

    init(_ source: any SessionSource) { self.source = source }

    /// Gives the caller the session of the token that it sends, which may be over. Refused as `session-ended`
    /// where there is no such session, where it is another app's, and where the caller says that it is
    /// somebody else's.
    nonisolated(nonsending) func identify(
        _ caller: inout Caller, sending request: Request, _ claim: Claim, _ work: WorkspaceLease
    ) async throws(Refusal) {
        if caller.session != nil || isLeftToBackend(caller) { return try refuseStray(in: request) }
        if caller.scheme == .messageSignatures {
            guard let token = try ownToken(of: caller, in: request) else { return }
            caller.session = try await session(of: caller.release.app, bearing: token)
            return
        }
        let users = try StatedUsers(in: request, caller.scheme)
        guard let token = try legacyToken(claim, of: caller, work, request) else {
            // A backend that is told a user id would believe it, and only a session vouches for one.
            guard users.ids.isEmpty else { throw Refusal(.sessionEnded, "userId without a token") }
            return
        }
        let session = try await session(of: caller.release.app, bearing: token)
        let subject = Array(session.account.subject.utf8)
        for id in users.ids where id != subject {
            throw Refusal(.sessionEnded, "userId is not the one that the token belongs to")
        }
        caller.session = session
    }

    /// Whether the caller's tokens are the backend's own.
    private func isLeftToBackend(_ caller: Caller) -> Bool {
        caller.scheme != .messageSignatures && caller.release.policy.legacySession == .upstream
    }

    /// A token has run out. To an old client that renews none, that is the end: it would not know what else to do.
    static func checkRenewal(_ session: Session, of release: ReleaseKey) throws(Refusal) {
        guard session.kind == .bearer, release.scheme != .messageSignatures, release.policy.legacyRenewal == .refused
        else { return }
        throw Refusal(.sessionEnded, "session \(session.id): the token ran out, and this release renews none")
    }

    nonisolated(nonsending) private func session(
        of app: String, bearing token: [UInt8]
    ) async throws(Refusal) -> Session {
        let session: Session?
        do throws(Fault) {
            session = try await source.session(bearing: token.span)
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
        guard let session, session.app == app else {
            throw Refusal(.sessionEnded, "no session has this token")
        }
        return session
    }

    // MARK: Where tokens are

    /// Ours, by how it begins; a backend may have tokens of its own in that field. It must be covered, or somebody on the way
    /// could put another's in its place.
    private func ownToken(of caller: Caller, in request: Request) throws(Refusal) -> [UInt8]? {
        guard let (index, token) = try bearer(in: request) else { return nil }
        guard token.starts(with: "b_".utf8) else {
            try refuseStray(in: request)
            return nil
        }
        try checkCovered(index, caller)
        return token
    }

    /// Among the signed parameters, or in the field. Where it is in both, both are one.
    private func legacyToken(
        _ claim: Claim, of caller: Caller, _ work: WorkspaceLease, _ request: Request
    ) throws(Refusal) -> [UInt8]? {
        let signed = claim.token(work.space)
        guard let (index, token) = try bearer(in: request) else { return signed }
        if caller.scheme == .sigV4 { try checkCovered(index, caller) }
        guard signed == nil || signed == token else { throw Refusal(.malformed, "two tokens that differ") }
        return token
    }

    /// Where a scheme can sign fields, what an unsigned one says is anybody's.
    private func checkCovered(_ index: Int, _ caller: Caller) throws(Refusal) {
        guard caller.coveredFields.contains(index) else {
            throw Refusal(.badSignature, "authorization bears a token and is not covered")
        }
    }

    /// What follows `Bearer` in the Authorization field, and which field that is; nil where there is none, and for other ways
    /// to authorize. Source: RFC 6750 §2.1, RFC 9110 §11.4.
    private func bearer(in request: Request) throws(Refusal) -> (index: Int, token: [UInt8])? {
        guard request.names.contains(.authorization) else { return nil }
        var found: (index: Int, token: [UInt8])?
        for index in request.fields.indices where request.fields[index].known == .authorization {
            let value = request.head.span.extracting(request.fields[index].value.range)
            guard value.count > 7, value.extracting(0..<7).matchesWithoutCase("bearer ") else {
                try Bearers.refuseStray(value)
                continue
            }
            guard found == nil else { throw Refusal(.malformed, "several bearer tokens") }
            var start = 7
            while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
            found = (index, value.extracting(start...).withUnsafeBufferPointer { Array($0) })
        }
        return found
    }

    /// A token of ours that is not taken for one would go on to the backend, which could then use it.
    private func refuseStray(in request: Request) throws(Refusal) {
        guard request.names.contains(.authorization) else { return }
        for field in request.fields where field.known == .authorization {
            try Bearers.refuseStray(request.head.span.extracting(field.value.range))
        }
    }

    private static func refuseStray(_ value: Span<UInt8>) throws(Refusal) {
        guard StrayToken.find(in: value) == nil else {
            throw Refusal(.malformed, "authorization holds a token of ours where none is read")
        }
    }
}
