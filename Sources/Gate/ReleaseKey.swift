import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The key of one version of an app on one platform: which app is calling, and by what rules it is judged.
package final class ReleaseKey: Sendable {
    /// From `at` (Unix seconds) on, callers are sent to `updateURL`.
    package struct Retirement: Sendable, Equatable {
        package var at: Int64
        package var updateURL: String

        package init(at: Int64, updateURL: String) {
            self.at = at
            self.updateURL = updateURL
        }
    }

    package let id: KeyID
    package let app: String
    /// As the authority knows it, lower-case: `ios`, `android`, …
    package let platform: String
    package let version: String
    package let scheme: SchemeName
    package let policy: Policy
    package let retirement: Retirement?
    /// The secret made ready for this scheme's MAC.
    package let key: SigningKey

    package init(
        id: KeyID, app: String, platform: String, version: String, scheme: SchemeName, policy: Policy,
        retirement: Retirement? = nil, secret: Secret
    ) {
        self.id = id
        self.app = app
        self.platform = platform
        self.version = version
        self.scheme = scheme
        self.policy = policy
        self.retirement = retirement
        self.key = SigningKey(secret)
    }
}

/// Where the gate finds keys. In memory for every live release; a source that must ask a store may suspend.
package protocol KeySource: Sendable {
    /// The release key of that id; nil where there is none.
    func key(for id: KeyID) async throws(Fault) -> ReleaseKey?
}
