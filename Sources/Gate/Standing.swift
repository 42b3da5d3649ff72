import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What is known of who sent a request, accepted or not: for the answer to it.
package struct Standing: Sendable {
    /// The release whose key the request names, rightly or not; nil where there is none. Its policy says how exact a
    /// refusal is, and the meter counts it there.
    package var release: ReleaseKey?
    /// The request key of the session whose MAC held: an answer under it tells the caller, and nobody else, that it is ours.
    /// Never a release's secret. That one is in every copy of the app, so an answer under it could be anybody's.
    package var shared: Credentials?

    package init() {}
}

extension Gate {
    /// Whether no other scheme has left a trace in it.
    package func isOfMessageSignatures(_ request: Request) -> Bool {
        for scheme in schemes.schemes where scheme.name != .messageSignatures && scheme.trace(in: request) != .absent {
            return false
        }
        return true
    }

    /// Reads the claim once more, so that the way of a good request carries nothing for it. No signature is judged: whose
    /// key is named is all that is asked.
    nonisolated(nonsending) package func standing(of request: Request) async -> Standing {
        let work = workspaces.take()
        defer { workspaces.put(back: work) }
        var standing = Standing()
        do throws(Refusal) {
            var claim = try schemes.claim(in: request, &work.space)
            var candidate = try await keys.key(for: claim)
            standing.release = candidate.release
            if let label = try candidate.otherLabel(than: claim, in: request) {
                claim = try schemes.claim(in: request, labelled: label, claim.scheme, &work.space)
                candidate = try await keys.key(for: claim, ofAppOf: candidate)
            }
            standing.release = candidate.release
        } catch {
            // Whatever is wrong with it, that much is known.
        }
        return standing
    }
}
