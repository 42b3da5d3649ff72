import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The app that the unsigned requests to a host belong to: its policy `legacy-host` names that host, and no
/// other app's does.
package final class HostedApp: Sendable {
    package let name: String
    /// The app's own, without what was set for a release alone.
    package let policy: Policy
    /// The versions that send a token and no signature.
    private let releases: [ReleaseKey]
    /// What stands for every version of them that is not registered, so that no caller can make a release.
    package let otherVersions: ReleaseKey

    /// What the platform and the version of ``otherVersions`` are called, and the platform of a session that
    /// began on one that no release names.
    package static let unknown = "unknown"

    /// `releases` are the app's of scheme `token`.
    package init(name: String, policy: Policy, releases: [ReleaseKey] = []) {
        self.name = name
        self.policy = policy
        self.releases = releases.sorted { $0.id.description < $1.id.description }
        otherVersions = ReleaseKey(
            id: HostedApp.otherVersionsID(of: name), app: name, platform: HostedApp.unknown,
            version: HostedApp.unknown,
            scheme: .token, policy: policy, key: SigningKey(Secret(random: 32)))
    }

    /// How the key ids of ``otherVersions`` begin; those of releases do not.
    package static let otherVersionsPrefix = "token:"

    /// The app's own: of a name that is too long for a key id, the beginning and a digest.
    package static func otherVersionsID(of app: String) -> KeyID {
        let name = Array(app.utf8)
        guard otherVersionsPrefix.utf8.count + name.count > KeyID.longest else {
            return KeyID(ours: otherVersionsPrefix + app)
        }
        let digest = Hex.encode(SHA256.digest(name.span).span).prefix(24)
        return KeyID(
            ours: otherVersionsPrefix + String(decoding: name.prefix(32), as: UTF8.self) + "~" + digest)
    }

    /// Whether a token of ours is enough here.
    var takesTokens: Bool { policy.schemes.contains(.token) && policy.legacySession == .authority }

    /// The release by whose rules a request that bears a token alone is judged. `session` is the token's; nil
    /// for a login.
    ///
    /// The version is what the request says, else the one that the session was last signed in or renewed
    /// under. A request that says a version and no platform is of the session's platform; where that is not
    /// known, the version must be that of one release alone.
    func release(saying stated: StatedVersion, in session: Session?) -> ReleaseKey {
        guard let version = stated.version else {
            return releases.first { $0.id == session?.release } ?? otherVersions
        }
        let known = session.flatMap { $0.platform == HostedApp.unknown ? nil : Array($0.platform.utf8) }
        let platform = stated.platform ?? known
        let found = releases.filter { release in
            guard release.version.utf8.elementsEqual(version) else { return false }
            guard let platform else { return true }
            return release.platform.utf8.elementsEqual(platform)
        }
        return found.count == 1 ? found[0] : otherVersions
    }
}

/// What a request says of the app that sends it.
struct StatedVersion {
    /// Lower-case, as platforms are known.
    var platform: [UInt8]?
    var version: [UInt8]?

    init(in request: Request, by policy: Policy) throws(Refusal) {
        let values = SentValues(request)
        version = try values.first(of: policy.releasePlaces)
        platform = try values.first(of: policy.platformPlaces)?.map(ASCII.lowercased)
    }
}

extension HostedApp {
    /// The release that a login or a renewal without a signature comes from, by what it says. Nil where the
    /// app takes no tokens alone.
    package func release(signingInBy request: Request) throws(Refusal) -> ReleaseKey? {
        takesTokens ? release(saying: try StatedVersion(in: request, by: policy), in: nil) : nil
    }
}

extension ReleaseKey {
    /// Whether it stands for every version that is not registered: no row of the store has its id.
    package var isOfOtherVersions: Bool { scheme == .token && id == HostedApp.otherVersionsID(of: app) }

    /// Refuses a call of a version that is not served any more, or may only read. `network` is where the
    /// client calls from; `now` is in whole Unix seconds.
    package func checkServed(
        as effect: Releases.Effect, from network: () -> [UInt8], at now: Int64
    ) throws(Refusal) {
        _ = try Releases().check(self, in: nil, effect, from: network, at: now)
    }
}
