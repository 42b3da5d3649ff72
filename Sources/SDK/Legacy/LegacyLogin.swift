import CountersignClient
import CountersignSchemes
import CountersignSeal

/// How users sign in at a server that is not Countersign's yet: `username` and `password` at `/login/login.php`, or another path.
/// Source: docs/protocol.md, "The login ladder".
public struct LegacyLogin: Sendable {
    /// What is sent as the password, from worst to best.
    public enum Rung: Sendable, Hashable {
        /// The password, in the query of a GET: it stands in every log on the way.
        case plainGet
        /// The password, in a form body.
        case plainPost
        /// Its Base64, which is the password to who can read.
        case base64
        /// Its MD5: as good as the password at this server.
        case md5
        /// The MD5 of it and of the app's salt.
        case md5Salt(String)
        /// The MD5 of its HMAC-MD5 under the app's key.
        case hmacMD5(key: String)
        /// Another value each minute, at `/login/loginhmac.php`. `zone` is whose minute it is, in seconds east of UTC. A server takes
        /// a minute's value once: who signs in twice within one is told that his password is wrong.
        case hmacMD5Time(key: String, zone: Int = 0)
    }

    /// Whether logins are signed like all other requests.
    public enum Signing: Sendable, Hashable {
        /// By the client's scheme.
        case likeRequests
        /// Not at all: where the scheme cannot sign a form.
        case none
    }

    let door: LegacyDoor

    /// `path` is where the server has its login, below no base path; nil where it is the rung's own.
    public init(_ rung: Rung, path: String? = nil, signing: Signing = .likeRequests) {
        let (kind, settings) = LegacyLogin.wire(rung)
        door = LegacyDoor(kind, settings, path: path, signing: signing == .likeRequests ? .likeRequests : .none)
    }

    private static func wire(_ rung: Rung) -> (CountersignSchemes.Rung, LadderSettings) {
        switch rung {
        case .plainGet: (.plainGet, LadderSettings())
        case .plainPost: (.plainPost, LadderSettings())
        case .base64: (.base64, LadderSettings())
        case .md5: (.md5, LadderSettings())
        case .md5Salt(let salt): (.md5Salt, LadderSettings(salt: secret(salt)))
        case .hmacMD5(let key): (.hmacMD5, LadderSettings(key: secret(key)))
        case .hmacMD5Time(let key, let zone): (.hmacMD5Time, LadderSettings(key: secret(key), timezoneOffset: zone))
        }
    }

    private static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
}
