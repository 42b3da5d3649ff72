import CountersignSeal
import CountersignWire

/// A session by tokens that are sent: whoever reads one has the session. For accounts that sign in by sending their password.
package struct BearerSession: Sendable {
    package let id: SessionID
    package internal(set) var token: Secret
    /// Gets new tokens, and does nothing else.
    var loginToken: Secret
    /// Whole Unix seconds.
    package var expires: Int64
    package var idle: Int64

    init(id: SessionID, token: Secret, loginToken: Secret, expires: Int64, idle: Int64) {
        self.id = id
        self.token = token
        self.loginToken = loginToken
        self.expires = expires
        self.idle = idle
    }

    /// The field that a request bears, which its signature covers.
    var authorization: Draft.Field {
        Draft.Field("Authorization", "Bearer \(token.withExposedBytes { $0.text })")
    }
}
