import CountersignTestKit

/// What lies between app and server, and what the attacker has against it.
package enum NetworkSecurity: Sendable {
    case plain
    /// TLS at the server. The attacker has an authority that the device trusts, and signs with it for `host`, and for whatever he likes.
    case tls(authority: Issued, host: String)
}
