import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Finds the key a claim names: a release's, or a session's. An unknown id gets a key too, one that nobody holds, so that
/// it is refused after the same work.
package struct KeyRing: Sendable {
    private let releases: any KeySource
    private let sessions: any SessionSource
    private let decoys = Decoys()

    package init(_ releases: any KeySource, _ sessions: any SessionSource = NoSessions()) {
        self.releases = releases
        self.sessions = sessions
    }

    nonisolated(nonsending) package func key(for claim: Claim) async throws(Refusal) -> Candidate {
        do {
            // A key made for one scheme says nothing in another: its holder may know less there than we think.
            let release = try await release(named: claim.release, speaking: claim.scheme)
            switch claim.holder {
            case .release:
                if let release { return Candidate(key: release.key, nextKey: release.nextKey, release: release) }
            case .session(let token):
                if let (session, key) = try await sessions.session(for: token) {
                    return Candidate(key: key, nextKey: nil, release: release, session: session)
                }
            case .nobody: break
            }
            return Candidate(key: decoys.key(for: claim), nextKey: nil, release: nil)
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
    }

    nonisolated(nonsending) private func release(
        named id: KeyID?, speaking scheme: SchemeName
    ) async throws(Fault) -> ReleaseKey? {
        #if SABOTAGE
            if Sabotage.isOn(.legacyAlwaysOn) { return try await releases.key(for: id, madeFor: scheme) }
        #endif
        guard let id, let release = try await releases.key(for: id), release.scheme == scheme else { return nil }
        return release
    }

    /// Whether the request's form or multipart body, where it has one, may bear a signature.
    func formBodies(of request: Request) throws(Refusal) -> ParameterNames.FormBodies {
        guard request.hasFormType || request.hasMultipartType else { return .ignored }
        #if SABOTAGE
            if Sabotage.isOn(.legacyAlwaysOn) { return .scanned }
        #endif
        do throws(Fault) {
            let host = request.head.span.extracting(request.authority.range)
            return try releases.allowsSignedForms(at: host) ? .scanned : .ignored
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
    }

    /// The app that an unsigned request belongs to, by its host; nil if no app, or more than one, names it.
    func app(at request: Request) throws(Refusal) -> HostedApp? {
        do throws(Fault) {
            return try releases.app(at: request.head.span.extracting(request.authority.range))
        } catch {
            throw Refusal(.unavailable, "keys: \(error.message)", retryAfter: 5)
        }
    }

    /// For explanations: nil where there is none.
    nonisolated(nonsending) func release(of id: KeyID) async throws(Fault) -> ReleaseKey? {
        try await releases.key(for: id)
    }

    /// For explanations: none where the source cannot say.
    nonisolated(nonsending) func siblings(of release: ReleaseKey) async -> [ReleaseKey] {
        (try? await releases.siblings(of: release)) ?? []
    }

    /// For explanations: one that a session's requests may come from; nil where the source cannot say.
    nonisolated(nonsending) func release(fitFor session: Session) async -> ReleaseKey? {
        try? await releases.anyRelease(of: session.app, on: session.platform)
    }

    /// The key of another signature on the same request: one of the app whose policy asked for it, and whose own release
    /// asks for no other. Else whoever adds a signature that names a release with a laxer policy would choose for this one.
    nonisolated(nonsending) func key(for claim: Claim, ofAppOf first: Candidate) async throws(Refusal) -> Candidate {
        let other = try await key(for: claim)
        guard let release = other.release else { return other }
        guard release.app == first.release?.app else {
            throw Refusal(
                .badSignature, "keyid \(claim.keyID): a key of another app than the one whose policy chose it")
        }
        guard release.allowance.label == first.release?.allowance.label else {
            throw Refusal(.badSignature, "keyid \(claim.keyID): the policy of its release chooses another signature")
        }
        return other
    }
}

/// A key to verify with, and whose it is; neither a release's nor a session's is the key that nobody holds.
package struct Candidate: Sendable {
    let key: SigningKey
    /// Tried where `key` does not fit.
    let nextKey: SigningKey?
    /// Of a session's request, the release that it says it comes from: nil where there is no such release.
    let release: ReleaseKey?
    let session: Session?

    init(key: SigningKey, nextKey: SigningKey?, release: ReleaseKey?, session: Session? = nil) {
        self.key = key
        self.nextKey = nextKey
        self.release = release
        self.session = session
    }

    var isNobodys: Bool { release == nil && session == nil }
}
