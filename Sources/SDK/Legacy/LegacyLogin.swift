import CountersignClient
import CountersignSchemes
import CountersignSeal

/// How users sign in at a server that is not Countersign's yet: `username` and `password` at
/// `/login/login.php`, or another path. Source: docs/protocol.md, "The login ladder".
public struct LegacyLogin: Sendable {
    /// What is sent as the password, from worst to best.
    public enum Rung: Sendable, Hashable {
        /// The password, in the query of a GET: every log on the path contains it.
        case plainGet
        /// The password, in a form body.
        case plainPost
        /// Its Base64, from which any reader gets the password.
        case base64
        /// Its MD5: as good as the password at this server.
        case md5
        /// The MD5 of the password and the app's salt.
        case md5Salt(String)
        /// The MD5 of its HMAC-MD5 under the app's key.
        case hmacMD5(key: String)
        /// Another value each minute, at `/login/loginhmac.php`. `zone` is the time zone of that minute, in
        /// seconds east of UTC. A server accepts a minute's value once: a second login within one minute is
        /// told that the password is wrong.
        case hmacMD5Time(key: String, zone: Int = 0)
    }

    /// Whether logins are signed like all other requests.
    public enum Signing: Sendable, Hashable {
        /// By the client's scheme.
        case likeRequests
        /// Not signed: if the scheme cannot sign a form.
        case none
    }

    let route: LegacyLoginRoute

    /// `path` is the server's login path, without a base path; nil for the rung's own.
    public init(_ rung: Rung, path: String? = nil, signing: Signing = .likeRequests) {
        let (kind, settings) = LegacyLogin.wire(rung)
        route = LegacyLoginRoute(
            kind, settings: settings, path: path, signing: signing == .likeRequests ? .likeRequests : .none)
    }

    private static func wire(_ rung: Rung) -> (CountersignSchemes.Rung, LadderSettings) {
        switch rung {
        case .plainGet: (.plainGet, LadderSettings())
        case .plainPost: (.plainPost, LadderSettings())
        case .base64: (.base64, LadderSettings())
        case .md5: (.md5, LadderSettings())
        case .md5Salt(let salt): (.md5Salt, LadderSettings(salt: secret(salt)))
        case .hmacMD5(let key): (.hmacMD5, LadderSettings(key: secret(key)))
        case .hmacMD5Time(let key, let zone):
            (.hmacMD5Time, LadderSettings(key: secret(key), timezoneOffset: zone))
        }
    }

    private static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
}
