import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Finds the key that a claim names: a release's or a session's. An unknown id gets a decoy key, so that its
/// refusal takes the same work.
package final class KeyRing: Sendable {
    private let releases: any ReleaseSource
    private let sessions: any SessionSource
    private let decoyKeys = DecoyKeys()

    package init(releases: any ReleaseSource, sessions: any SessionSource = EmptySessionSource()) {
        self.releases = releases
        self.sessions = sessions
    }

    package func key(for claim: Claim) throws(Refusal) -> VerificationKey {
        var recent = RecentReleases()
        return try key(for: claim, recent: &recent)
    }

    /// The same, where releases that were named before may be kept in `recent`.
    func key(for claim: Claim, recent: inout RecentReleases) throws(Refusal) -> VerificationKey {
        do {
            // A key made for one scheme must not verify another: knowing what signs in the one scheme may not
            // mean knowing the secret.
            var release: AppRelease?
            if claim.release != nil { release = try recent.release(of: claim, from: releases) }
            switch claim.holder {
            case .release:
                if let release { return VerificationKey(owner: .release(release)) }
            case .session(let token):
                if let (session, key) = try sessions.session(for: token) {
                    return VerificationKey(owner: .session(session, key: key, release: release))
                }
            case .unknown: break
            }
            return VerificationKey(owner: .nobody(decoy: decoyKeys.key(for: claim)))
        } catch {
            throw Refusal(error, in: "keys")
        }
    }

    /// Whether the request's form or multipart body, where it has one, may bear a signature.
    func formBodies(of request: Request) throws(Refusal) -> RequestParameterNames.FormBodies {
        guard request.hasFormType || request.hasMultipartType else { return .ignored }
        do {
            let host = request.head.span.extracting(request.authority.range)
            return try releases.allowsSignedForms(at: host) ? .scanned : .ignored
        } catch {
            throw Refusal(error, in: "keys")
        }
    }

    /// The app that an unsigned request belongs to, by its host; nil if no app, or more than one, names the
    /// host.
    func app(at request: Request) throws(Refusal) -> HostedApp? {
        do {
            return try releases.app(at: request.head.span.extracting(request.authority.range))
        } catch {
            throw Refusal(error, in: "keys")
        }
    }

    /// Whether any app wants callers told why they are refused.
    var explainsRefusals: Bool { releases.explainsRefusals }

    var crossOriginRules: [CrossOriginRules] { releases.crossOriginRules }

    var hasCrossOriginRules: Bool { releases.hasCrossOriginRules }

    /// For explanations; nil if there is none.
    func release(of id: KeyID) throws(OperationalError) -> AppRelease? {
        try releases.release(for: id)
    }

    /// For explanations; empty if the source fails.
    func siblings(of release: AppRelease) -> [AppRelease] {
        (try? releases.siblings(of: release)) ?? []
    }

    /// For explanations: a release that the session's requests may name; nil if the source fails or has none.
    func release(for session: Session) -> AppRelease? {
        try? releases.anyRelease(of: session.app, on: session.platform)
    }

    /// The key of another signature on the same request. It must belong to the app whose policy chose that
    /// signature, and its own release must choose the same label. Otherwise an added signature that names a
    /// release with a laxer policy could override the choice.
    func key(
        for claim: Claim, ofAppOf first: VerificationKey, recent: inout RecentReleases
    ) throws(Refusal) -> VerificationKey {
        let other = try key(for: claim, recent: &recent)
        guard let release = other.release else { return other }
        guard release.app == first.release?.app else {
            throw Refusal(
                .badSignature,
                detail: "keyid \(claim.keyID): a key of another app than the one whose policy chose it")
        }
        guard release.schemePolicy.label == first.release?.schemePolicy.label else {
            throw Refusal(
                .badSignature,
                detail: "keyid \(claim.keyID): the policy of its release chooses another signature")
        }
        return other
    }
}

/// The releases that were found last. Finding one again costs no look-up in the source's table, with its lock
/// and its hash. Only ids of releases get in. These are public: that such an id is found sooner than an
/// unknown one reveals no more than the refusal does.
struct RecentReleases: Sendable {
    private static let count = 8

    private var releases: [AppRelease?] = []
    private var generation: ReleaseGeneration?

    mutating func release(
        of claim: Claim, from source: any ReleaseSource
    ) throws(OperationalError) -> AppRelease? {
        // The generation is read first: an answer of a later one is looked up again, and never kept too long.
        guard let id = claim.release else { return nil }
        guard let now = source.generation else { return try source.release(for: id, scheme: claim.scheme) }
        let place = RecentReleases.place(of: id)
        if now == generation {
            if let release = releases[place], release.id == id, release.scheme == claim.scheme {
                return release
            }
        } else {
            releases = [AppRelease?](repeating: nil, count: RecentReleases.count)
            generation = now
        }
        guard let release = try source.release(for: id, scheme: claim.scheme) else { return nil }
        releases[place] = release
        return release
    }

    /// Ids are random, or chosen by an administrator.
    private static func place(of id: KeyID) -> Int {
        let bytes = id.bytes
        return (Int(bytes[0]) &+ 3 &* Int(bytes[bytes.count - 1])) & (count - 1)
    }
}

/// The key to verify a claim with, and the release or session that owns it. A key without an owner is a
/// decoy.
package struct VerificationKey: Sendable {
    enum Owner: Sendable {
        case release(AppRelease)
        /// `release` is the one that the claim names; nil if there is no such release.
        case session(Session, key: SigningKey, release: AppRelease?)
        case nobody(decoy: SigningKey)
    }

    let owner: Owner

    var key: SigningKey {
        switch owner {
        case .release(let release): release.key
        case .session(_, let key, _), .nobody(let key): key
        }
    }

    /// Tried if `key` does not verify the signature.
    var nextKey: SigningKey? { if case .release(let release) = owner { release.nextKey } else { nil } }

    /// The release that the claim names; nil if there is no such release.
    var release: AppRelease? {
        switch owner {
        case .release(let release): release
        case .session(_, _, let release): release
        case .nobody: nil
        }
    }

    var session: Session? { if case .session(let session, _, _) = owner { session } else { nil } }

    var isDecoy: Bool { if case .nobody = owner { true } else { false } }
}

/// Random keys that stand in for unknown key ids: verifying with a decoy takes as long as with a real key of
/// the kind that the signature looks like. P-384 and RSA have no decoy; the time reveals an unknown id of
/// theirs, which the response reveals as well.
struct DecoyKeys: Sendable {
    private let shared = SigningKey(Secret(random: 32))
    private let ed25519: SigningKey
    private let p256: SigningKey

    init() {
        ed25519 = DecoyKeys.pair(.ed25519) ?? shared
        p256 = DecoyKeys.pair(.ecdsaP256) ?? shared
    }

    private static func pair(_ algorithm: KeyAlgorithm) -> SigningKey? {
        guard let pair = try? PrivateKey(random: algorithm) else { return nil }
        return SigningKey(pair.publicKey)
    }

    /// Chosen by the algorithm that the message names, or else by the length of its signature.
    func key(for claim: Claim) -> SigningKey {
        guard claim.algorithm == .ofKey else { return shared }
        switch claim.namedAlgorithm {
        case .ed25519: return ed25519
        case .ecdsaP256: return p256
        case nil: return claim.mac.count == Ed25519.signatureCount ? ed25519 : shared
        default: return shared
        }
    }
}
