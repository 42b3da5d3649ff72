import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The hosts that this deployment answers for. A signature for another host must not be accepted here.
package struct AllowedHosts: Sendable {
    /// Nil where every host is allowed.
    private let names: [[UInt8]]?

    /// Allows every host, so that a signature for another deployment opens this one: for planted faults.
    package static let allowingEveryHostUnchecked = AllowedHosts(names: nil)

    private init(names: [[UInt8]]?) { self.names = names }

    /// Each name is `host` or `host:port`, compared without case; the transport's default port may be
    /// omitted.
    package init(_ names: [String]) { self.names = names.map { Array($0.lowercased().utf8) } }

    package func check(_ request: Request) throws(Refusal) {
        guard let names else { return }
        let port = request.transport.defaultPortSuffix
        let host = request.head.span.extracting(request.authority.range)
        // Most clients write the name as it is configured.
        for name in names where host.count > 0 && host.matches(name.span) { return }
        for name in names where AllowedHosts.isSame(host, as: name.span, ignoringPort: port) { return }
        throw Refusal(.malformed, detail: "Host: not an authority of this deployment")
    }

    private static func isSame(_ left: Span<UInt8>, as right: Span<UInt8>, ignoringPort port: StaticString)
        -> Bool
    {
        let left = URIAuthority.normalised(left, without: port)
        let right = URIAuthority.normalised(right, without: port)
        guard left.count == right.count, left.count > 0 else { return false }
        for index in 0..<left.count where ASCII.lowercased(left[index]) != ASCII.lowercased(right[index]) {
            return false
        }
        return true
    }
}

/// The app that the unsigned requests to a host belong to: its policy `legacy-host` names that host, and no
/// other app's does.
package final class HostedApp: Sendable {
    package let name: String
    /// The app's own policy, without settings of a single release.
    package let policy: Policy
    /// The registered versions that send a token and no signature.
    private let releases: [AppRelease]
    /// Represents all unregistered versions, so that callers cannot create releases.
    package let otherVersions: AppRelease

    /// The platform and version of ``otherVersions``, and the platform of a session that began on an
    /// unregistered platform.
    package static let unknown = "unknown"

    /// `releases` are the app's releases with scheme `token`.
    package init(name: String, policy: Policy, releases: [AppRelease] = []) {
        self.name = name
        self.policy = policy
        self.releases = releases.sorted { $0.id.description < $1.id.description }
        otherVersions = AppRelease(
            id: HostedApp.otherVersionsID(of: name), app: name, platform: HostedApp.unknown,
            version: HostedApp.unknown,
            scheme: .token, policy: policy, key: SigningKey(Secret(random: 32)))
    }

    /// The prefix of the key ids of ``otherVersions``; no key id of a registered release begins with it.
    package static let otherVersionsPrefix = "token:"

    /// The key id of the app's ``otherVersions``. A name too long for a key id is shortened to its beginning
    /// and a digest.
    package static func otherVersionsID(of app: String) -> KeyID {
        let name = Array(app.utf8)
        guard otherVersionsPrefix.utf8.count + name.count > KeyID.longest else {
            return KeyID(ours: otherVersionsPrefix + app)
        }
        let digest = Hex.encode(SHA256.digest(name.span).span).prefix(24)
        return KeyID(
            ours: otherVersionsPrefix + String(decoding: name.prefix(32), as: UTF8.self) + "~" + digest)
    }

    /// Whether this app accepts the authority's token without a signature.
    var acceptsTokens: Bool { policy.schemes.contains(.token) && policy.legacySession == .authority }

    /// The release whose policy applies to a request that bears a token alone. `session` is the token's
    /// session; nil for a login.
    ///
    /// The request states the version; otherwise the release is the one under which the session was last
    /// signed in or renewed. A request that states a version but no platform has the session's platform; if
    /// that is unknown, exactly one release must have the version.
    func release(forVersion stated: StatedVersion, in session: Session?) -> AppRelease {
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

/// The version and platform that a request states.
struct StatedVersion {
    /// In lower case, as platforms are stored.
    var platform: [UInt8]?
    var version: [UInt8]?

    init(in request: Request, by policy: Policy) throws(Refusal) {
        let values = RequestValues(request)
        version = try values.first(of: policy.releaseLocations)
        platform = try values.first(of: policy.platformLocations)?.map(ASCII.lowercased)
    }
}

extension HostedApp {
    /// The release that an unsigned login or renewal states. Nil if the app does not accept tokens without
    /// signatures.
    package func releaseForLogin(by request: Request) throws(Refusal) -> AppRelease? {
        acceptsTokens ? release(forVersion: try StatedVersion(in: request, by: policy), in: nil) : nil
    }
}

extension AppRelease {
    /// Whether this release represents all unregistered versions: no row of the store has its id.
    package var isUnregisteredVersion: Bool { scheme == .token && id == HostedApp.otherVersionsID(of: app) }

    /// Refuses a request of a retired version, or one that changes something if the version may only read.
    /// `network` returns the client's network address; `now` is in whole Unix seconds.
    package func checkServed(
        as effect: ReleaseCheck.Effect, from network: () -> [UInt8], at now: Int64
    ) throws(Refusal) {
        _ = try ReleaseCheck().check(self, in: nil, effect: effect, from: network, at: now)
    }
}
