/// The app that the unsigned requests to a host belong to: its policy `legacy-host` names that host, and no other
/// app's does.
package final class HostedApp: Sendable {
    package let name: String
    /// The app's own, without what was set for a release alone.
    package let policy: Policy

    package init(name: String, policy: Policy) {
        self.name = name
        self.policy = policy
    }
}
