import CountersignSchemes
import CountersignSeal

/// A key that the request might have been signed with by mistake.
package struct KnownKey: Sendable {
    let key: SigningKey
    let cause: Cause

    init(_ key: SigningKey, _ cause: Cause) {
        self.key = key
        self.cause = cause
    }

    /// Another release of the same app.
    package init(of release: ReleaseKey) {
        key = release.key
        cause = Cause(
            "secret-of-another-release",
            "the secret of another release was used: \(release.id) (\(release.platform) \(release.version))",
            "build each release with its own key id and secret")
    }

    /// One that whoever asks has at hand; `name` says which.
    package init(_ secret: Secret, name: String) {
        key = SigningKey(secret)
        cause = Cause("another-secret", "another secret was used: \(name)", "give the client the secret of this key id")
    }
}
