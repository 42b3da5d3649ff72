/// Balances behind the servers.
package final class Bank: Sendable {
    /// What lies on a new account.
    package static let opening = 1_000
}
