import CountersignSeal
import CountersignWire

/// One of the seven ways in which legacy clients send a password, from worst to best. Each legacy account is
/// on one rung. Source: docs/protocol.md, "The login ladder".
package enum Rung: String, Sendable, CaseIterable {
    /// The password, in the query of a GET.
    case plainGet = "plain-get"
    /// The password, in the form body of a POST.
    case plainPost = "plain-post"
    /// Base64 of the password.
    case base64
    /// Hex MD5 of the password.
    case md5
    /// Hex MD5 of the password and the app's salt behind it.
    case md5Salt = "md5-salt"
    /// Hex MD5 of the hex HMAC-MD5 of the password under the app's key.
    case hmacMD5 = "hmac-md5"
    /// Hex HMAC-MD5 of a derived value and the minute; the value changes each minute.
    case hmacMD5Time = "hmac-md5-time"

    /// The endpoint that receives a rung's logins. The server's work for a login depends on the endpoint
    /// alone, never on the account, so that its time reveals nothing about an account.
    package enum LoginEndpoint: Sendable, CaseIterable {
        /// `GET /login/login.php`
        case query
        /// `POST /login/login.php`
        case form
        /// `POST /login/loginhmac.php`
        case minute

        package var path: String {
            switch self {
            case .query, .form: "/login/login.php"
            case .minute: "/login/loginhmac.php"
            }
        }

        package var method: String {
            switch self {
            case .query: "GET"
            case .form, .minute: "POST"
            }
        }
    }

    package var endpoint: LoginEndpoint {
        switch self {
        case .plainGet: .query
        case .plainPost, .base64, .md5, .md5Salt, .hmacMD5: .form
        case .hmacMD5Time: .minute
        }
    }
}

extension Rung {
    /// What a client of this rung sends: `username` and `password`, in the query of a GET, or else in a form
    /// body. Percent-encoded, which legacy clients do not do but every server understands. `value` comes
    /// from ``LoginLadder/sentValue(for:on:settings:at:)``.
    package func loginRequest(
        username: String, value: Secret, path: String? = nil, authority: String, transport: Request.Transport
    ) -> Draft {
        var form: [UInt8] = []
        Form.append("username", value: Array(username.utf8).span, to: &form)
        value.withExposedBytes { Form.append("password", value: $0, to: &form) }
        var draft = Draft(
            method: endpoint.method, target: Array((path ?? endpoint.path).utf8), authority: authority,
            transport: transport)
        draft.attach(form, to: endpoint.method == "GET" ? .query : .body)
        return draft
    }
}
