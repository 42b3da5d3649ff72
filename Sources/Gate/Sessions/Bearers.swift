import CountersignSchemes
import CountersignWire

/// Whose token does the request bear? Only clients without OPAQUE send one: it is looked up by its hash, and what the
/// backend issued itself is not read. Source: docs/protocol.md, "Bearer sessions".
struct Bearers: Sendable {
    private let source: any SessionSource

    init(_ source: any SessionSource) { self.source = source }

    /// The caller with the session of the token that it sends, which may be over. Refused as `session-ended` where there is
    /// no such session, where it is another app's, and where the caller says that it is somebody else's.
    nonisolated(nonsending) func identify(
        _ caller: Caller, sending request: Request, _ claim: Claim, _ work: WorkspacePool.Lease
    ) async throws(Refusal) -> Caller {
        guard caller.session == nil else { return caller }
        if caller.scheme == .messageSignatures {
            guard let token = try ownToken(of: caller, in: request) else { return caller }
            return try await identify(caller, by: token)
        }
        guard caller.release.policy.legacySession == .authority else { return caller }
        if caller.scheme == .formMD5 { try refuseUnsigned(in: request) }
        let token = try legacyToken(claim, work, request)
        let userID = claim.userID(work.space)
        guard let token else {
            // A backend that is told a user id would believe it, and only a session vouches for one.
            guard userID == nil else { throw Refusal(.sessionEnded, "userId without a token") }
            return caller
        }
        let found = try await identify(caller, by: token)
        if let userID, let session = found.session, !userID.span.matches(Array(session.account.subject.utf8).span) {
            throw Refusal(.sessionEnded, "userId is not the one that the token belongs to")
        }
        return found
    }

    /// A token has run out. To an old client that renews none, that is the end: it would not know what else to do.
    static func checkRenewal(_ session: Session, of caller: Caller) throws(Refusal) {
        guard session.kind == .bearer, caller.scheme != .messageSignatures,
            caller.release.policy.legacyRenewal == .refused
        else { return }
        throw Refusal(.sessionEnded, "session \(session.id): the token ran out, and this release renews none")
    }

    nonisolated(nonsending) private func identify(
        _ caller: Caller, by token: [UInt8]
    ) async throws(Refusal) -> Caller {
        let session: Session?
        do throws(Fault) {
            session = try await source.session(bearing: token.span)
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
        guard let session, session.app == caller.release.app else {
            throw Refusal(.sessionEnded, "no session has this token")
        }
        var caller = caller
        caller.session = session
        return caller
    }

    // MARK: Where tokens are

    /// Ours, by how it begins; a backend may have tokens of its own in that field. It must be covered, or somebody on the way
    /// could put another's in its place.
    private func ownToken(of caller: Caller, in request: Request) throws(Refusal) -> [UInt8]? {
        guard let (index, token) = try bearer(in: request), token.starts(with: Array("b_".utf8)) else { return nil }
        guard caller.coveredFields.contains(index) else {
            throw Refusal(.badSignature, "authorization bears a token and is not covered")
        }
        return token
    }

    /// Among the signed parameters, or in the field. Where it is in both, both are one.
    private func legacyToken(
        _ claim: Claim, _ work: WorkspacePool.Lease, _ request: Request
    ) throws(Refusal) -> [UInt8]? {
        let signed = claim.token(work.space)
        guard let (_, token) = try bearer(in: request) else { return signed }
        guard signed == nil || signed == token else { throw Refusal(.malformed, "two tokens that differ") }
        return token
    }

    /// What follows `Bearer` in the Authorization field, and which field that is; nil where there is none, and for other ways
    /// to authorize. Source: RFC 6750 §2.1.
    private func bearer(in request: Request) throws(Refusal) -> (index: Int, token: [UInt8])? {
        guard request.names.contains(.authorization) else { return nil }
        var found: (index: Int, token: [UInt8])?
        for index in request.fields.indices where request.fields[index].known == .authorization {
            let value = request.head.span.extracting(request.fields[index].value.range)
            guard value.count > 7, value.extracting(0..<7).matchesWithoutCase("bearer ") else { continue }
            guard found == nil else { throw Refusal(.malformed, "several bearer tokens") }
            found = (index, value.extracting(7...).withUnsafeBufferPointer { Array($0) })
        }
        return found
    }

    /// Beside a signed form nothing signs the query, and some backends prefer its parameters.
    private func refuseUnsigned(in request: Request) throws(Refusal) {
        guard !request.body.isEmpty, let query = request.query else { return }
        let text = request.head.span.extracting(query.range)
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) {
                guard !Form.isNamed("userId", pair, of: text), !Form.isNamed("token", pair, of: text) else {
                    throw Form.Problem(at: Int(pair.name.start), expected: "neither userId nor token")
                }
            }
        } catch {
            throw Refusal(.malformed, "the query, which nothing signs: expected \(error.expected) at byte \(error.at)")
        }
    }
}
