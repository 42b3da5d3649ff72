import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What is known of who sent a request, accepted or not: for the answer to it.
package struct Standing: Sendable {
    /// The release whose key the request names, rightly or not; nil where there is none. Its policy says how exact a
    /// refusal is, and the meter counts it there.
    package var release: ReleaseKey?
    /// What the request names as its key; nil where there is none of that name.
    package internal(set) var keyID: KeyID?
    /// The session whose key it names, and that key.
    var session: (session: Session, key: SigningKey)?
    /// The request key of the session whose MAC held: an answer under it tells the caller, and nobody else, that it is ours.
    /// Never a release's secret. That one is in every copy of the app, so an answer under it could be anybody's.
    package var shared: Credentials?

    package init() {}
}

extension Gate {
    /// Whether any scheme has left a trace in it, well signed or badly.
    package func isSigned(_ request: Request) -> Bool { schemes.traces(in: request).areSigned }

    /// For what is answered without a signature: refuses what was sent to another host.
    package func checkAuthority(of request: Request) throws(Refusal) { try authorities.check(request) }

    /// Whether no other scheme has left a trace in it.
    package func isOfMessageSignatures(_ request: Request) -> Bool {
        schemes.traces(in: request).areOfMessageSignatures
    }

    /// Reads the claim once more, and judges the MAC of a session's, so that the way of a good request carries nothing for it.
    nonisolated(nonsending) package func standing(of request: Request) async -> Standing {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        var standing = Standing()
        do throws(Refusal) {
            var claim = try schemes.claim(in: request, &work.space)
            var candidate = try await keys.key(for: claim)
            standing.name(candidate, by: claim)
            if let label = try candidate.otherLabel(than: claim, in: request) {
                claim = try schemes.claim(in: request, labelled: label, claim.scheme, &work.space)
                candidate = try await keys.key(for: claim, ofAppOf: candidate)
            }
            standing.name(candidate, by: claim)
            // A release's secret signs no answers, so whether its MAC held is not asked.
            guard standing.session?.session.kind == .device, claim.scheme == .messageSignatures,
                let scheme = schemes.scheme(named: claim.scheme)
            else { return standing }
            try scheme.spell(claim, request, &work.space)
            let signer = try Verify.signer(of: claim, request, scheme, candidate, &work.space)
            if let signer, signer.publicKey == nil {
                standing.shared = Credentials(keyID: claim.keyID, key: signer)
            }
        } catch {
            // Whatever is wrong with it, that much is known.
        }
        return standing
    }
}

extension Standing {
    fileprivate mutating func name(_ candidate: Candidate, by claim: Claim) {
        release = candidate.release
        keyID = candidate.isNobodys ? nil : claim.keyID
        session = candidate.session.map { ($0, candidate.key) }
    }
}
