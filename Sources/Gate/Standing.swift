import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What is known of who sent a request, accepted or not: for the answer to it.
package struct Standing: Sendable {
    /// The release whose key the request names; nil where there is none.
    package var release: ReleaseKey?
    /// The shared secret that the request's MAC held under. An answer under it tells the caller, and nobody else, that it
    /// is ours. Nil where it did not hold, and where the caller signs with a key pair, of which we have only half.
    package var shared: Credentials?
}

extension Gate {
    /// Whether no other scheme has left a trace in it.
    package func isOfMessageSignatures(_ request: Request) -> Bool {
        for scheme in schemes.schemes where scheme.name != .messageSignatures && scheme.trace(in: request) != .absent {
            return false
        }
        return true
    }

    /// Judges the signature once more, so that the way of a good request carries nothing for it.
    nonisolated(nonsending) package func standing(of request: Request) async -> Standing {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        var standing = Standing()
        do throws(Refusal) {
            var claim = try schemes.claim(in: request, &work.space)
            var candidate = try await keys.key(for: claim)
            if let label = try candidate.otherLabel(than: claim, in: request) {
                claim = try schemes.claim(in: request, labelled: label, claim.scheme, &work.space)
                candidate = try await keys.key(for: claim, ofAppOf: candidate)
            }
            standing.release = candidate.release
            guard candidate.release != nil, let scheme = schemes.scheme(named: claim.scheme) else { return standing }
            work.space.publicURL = candidate.release?.allowance.publicURL
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
