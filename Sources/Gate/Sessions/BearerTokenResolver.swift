import CountersignSchemes
import CountersignWire

/// Resolves the bearer token of a request to a session. Only clients without OPAQUE send one. The token is
/// looked up by its hash; tokens that the backend issued are not read. Source: docs/protocol.md, "Bearer
/// sessions".
struct BearerTokenResolver: Sendable {
    private let source: any SessionSource

    init(_ source: any SessionSource) { self.source = source }

    /// The session of the caller: `proven`, or that of its token; nil for none. It may have ended. Refuses as
    /// `session-ended` if there is no such session, if it belongs to another app, or if the request states
    /// another user id.
    func session(
        of release: AppRelease, proven: Session?, sending request: Request, claim: Claim,
        lease work: WorkspaceLease
    ) throws(Refusal) -> Session? {
        if proven != nil || isLeftToBackend(release) {
            try refuseMisplacedToken(in: request)
            return proven
        }
        if case .messageSignatures = release.scheme {
            // Such a request has its token in this field or nowhere.
            guard request.names.contains(.authorization), let token = try ownToken(of: claim, in: request)
            else { return nil }
            return try session(of: release.app, bearing: token)
        }
        let users = try StatedUserIDs(in: request, scheme: release.scheme)
        guard let token = try legacyToken(in: claim, lease: work, request: request) else {
            // The backend would believe the stated user id, which only a session can prove.
            guard users.ids.isEmpty else { throw Refusal(.sessionEnded, detail: "userId without a token") }
            return nil
        }
        let session = try session(of: release.app, bearing: token)
        for id in users.ids where !session.account.isStated(as: id.span) {
            throw Refusal(.sessionEnded, detail: "userId is not the one that the token belongs to")
        }
        return session
    }

    /// Whether the backend issues the caller's tokens.
    private func isLeftToBackend(_ release: AppRelease) -> Bool {
        release.scheme != .messageSignatures && release.policy.legacySession == .upstream
    }

    /// Refuses an expired token as `session-ended` if it is of a legacy client that does not renew tokens,
    /// which would not understand `token-expired`.
    static func checkRenewal(_ session: Session, of release: AppRelease) throws(Refusal) {
        guard session.kind == .bearer, release.scheme != .messageSignatures,
            release.policy.legacyRenewal == .refused
        else { return }
        throw Refusal(
            .sessionEnded,
            detail: "session \(session.id): the token expired, and this release does not renew tokens",
            decidedAt: session.expires)
    }

    private func session(
        of app: String, bearing token: [UInt8]
    ) throws(Refusal) -> Session {
        let session: Session?
        do {
            session = try source.session(bearing: token.span)
        } catch {
            throw Refusal(error, in: "sessions")
        }
        guard let session, session.app == app else {
            throw Refusal(.sessionEnded, detail: "no session has this token")
        }
        return session
    }

    // MARK: Where tokens are

    /// The authority's token, recognised by its prefix; the field may also contain a token of the backend.
    /// The signature must cover it; otherwise a man in the middle could replace it with another session's
    /// token.
    private func ownToken(of claim: Claim, in request: Request) throws(Refusal) -> [UInt8]? {
        guard let (index, token) = try bearer(in: request) else { return nil }
        guard token.starts(with: "b_".utf8) else {
            try refuseMisplacedToken(in: request)
            return nil
        }
        try requireCoverage(ofField: index, by: claim)
        return token
    }

    /// The token from the signed parameters or from the field. If it is in both, the two must be equal.
    private func legacyToken(
        in claim: Claim, lease work: WorkspaceLease, request: Request
    ) throws(Refusal) -> [UInt8]? {
        let signed = claim.token(in: work.workspace)
        guard let (index, token) = try bearer(in: request) else { return signed }
        if claim.scheme == .sigV4 { try requireCoverage(ofField: index, by: claim) }
        guard signed == nil || signed == token else {
            throw Refusal(.malformed, detail: "two tokens that differ")
        }
        return token
    }

    /// Refuses a token in a field that the signature does not cover: anyone could have set it.
    private func requireCoverage(ofField index: Int, by claim: Claim) throws(Refusal) {
        guard claim.coveredFields.contains(index) else {
            throw Refusal(.badSignature, detail: "authorization bears a token and is not covered")
        }
    }

    /// The token after `Bearer` in the Authorization field, with the index of that field; nil if there is
    /// none, and for other authentication schemes. Source: RFC 6750 §2.1, RFC 9110 §11.4.
    private func bearer(in request: Request) throws(Refusal) -> (index: Int, token: [UInt8])? {
        guard request.names.contains(.authorization) else { return nil }
        var found: (index: Int, token: [UInt8])?
        for index in request.fields.indices where request.fields[index].known == .authorization {
            let value = request.head.span.extracting(request.fields[index].value.range)
            guard value.count > 7, value.extracting(0..<7).matchesWithoutCase("bearer ") else {
                try BearerTokenResolver.refuseMisplacedToken(value)
                continue
            }
            guard found == nil else { throw Refusal(.malformed, detail: "several bearer tokens") }
            var start = 7
            while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
            found = (index, value.extracting(start...).withUnsafeBufferPointer { Array($0) })
        }
        return found
    }

    /// Refuses a token of the authority that the gate does not read: it would reach the backend, which could
    /// then use it.
    private func refuseMisplacedToken(in request: Request) throws(Refusal) {
        guard request.names.contains(.authorization) else { return }
        for field in request.fields where field.known == .authorization {
            try BearerTokenResolver.refuseMisplacedToken(request.head.span.extracting(field.value.range))
        }
    }

    private static func refuseMisplacedToken(_ value: Span<UInt8>) throws(Refusal) {
        guard BearerTokenScanner.find(in: value) == nil else {
            throw Refusal(.malformed, detail: "authorization holds a token of ours where none is read")
        }
    }
}
