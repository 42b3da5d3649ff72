/// One of the seven ways in which clients in the field send a password, from worst to best. An account is on one of
/// them. Source: docs/protocol.md, "The login ladder".
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
    /// Hex HMAC-MD5 of a derived value and the minute: another one each minute.
    case hmacMD5Time = "hmac-md5-time"

    /// Where a rung's logins arrive. What a server does for one depends on this alone, never on the account, so that
    /// the time it takes tells nothing about an account.
    package enum Door: Sendable, CaseIterable {
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

    package var door: Door {
        switch self {
        case .plainGet: .query
        case .plainPost, .base64, .md5, .md5Salt, .hmacMD5: .form
        case .hmacMD5Time: .minute
        }
    }
}
