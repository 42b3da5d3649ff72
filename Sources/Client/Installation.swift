import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One version of an app on one device, as it faces one authority.
package struct Installation: Sendable {
    /// The authority's host, with its port where that does not go without saying: the `Host` field of what is sent there.
    package var host: String
    package var transport: Request.Transport
    /// Where the authority's own routes begin.
    package var prefix = Installation.standardPrefix
    /// The release key.
    package var release: Credentials
    /// The app's name; nil where it is to be learnt from the authority.
    package var app: String?
    /// Verifies what the authority signs for callers without a session; nil where it is not known.
    package var authorityKey: SigningKey?
    package var userAgent: String
    /// Whether the connection itself vouches for the authority, whose own key is then not needed to sign up.
    package var channel: Channel
    package var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate

    package enum Channel: Sendable {
        /// A certificate was named for this authority and no other will do.
        case pinned
        /// Any certificate that somebody out there vouches for, or none at all.
        case open
    }

    /// Where a password, or a token that whoever reads it can use, is sent. Never but over TLS.
    package enum BearerSecrets: Sendable {
        case onlyToThePinnedCertificate
        /// Also where only one of the system's many authorities says who is there.
        case toAnyCertificateThatVerifies
    }

    package static let standardPrefix = "/countersign/v1"

    package init(
        host: String, transport: Request.Transport, release: Credentials, userAgent: String, channel: Channel
    ) {
        self.host = host
        self.transport = transport
        self.release = release
        self.userAgent = userAgent
        self.channel = channel
    }

    /// A request for one of the authority's own routes; `path` begins with `/`.
    func draft(_ method: String, _ path: String, _ body: JSONValue? = nil) -> Draft {
        var draft = Draft(
            method: method, target: Array("\(prefix)\(path)".utf8), authority: host, transport: transport)
        draft.fields = [Draft.Field("User-Agent", userAgent), Draft.Field("Accept", "application/json")]
        if let body {
            draft.set("Content-Type", "application/json")
            draft.body = Array(body.text.utf8)
        }
        return draft
    }
}

/// What a client needs of the world, as arguments.
package struct Surroundings: Sendable {
    package var transport: any Transport
    package var keeper: StateKeeper
    package var time: any ClientTime
    package var random: any RandomSource
    /// Signs for the device where its key is bound to presence, and somebody is present.
    package var signer: (any DeviceSigner)?
    /// Where a login by OPAQUE notes whose it was; nil where nothing is to be noted.
    package var opaqueAccounts: OpaqueAccounts?
    /// What every device of a deployment keeps to. Nothing outside this module and its tests sees it: a record made with a cheaper one
    /// is cheaper to guess.
    var stretching = KeyStretching.standard

    /// `keeper` is the client's one and only.
    package init(transport: any Transport, keeper: StateKeeper, time: any ClientTime, random: any RandomSource) {
        self.transport = transport
        self.keeper = keeper
        self.time = time
        self.random = random
    }
}

/// Two clocks: one that says what time it is, and may be wrong, and one that says how long something took.
package protocol ClientTime: Sendable {
    /// Whole Unix seconds, by the device.
    var now: Int64 { get }
    /// Milliseconds since some moment; never goes back.
    var milliseconds: Int64 { get }
}

extension Installation {
    /// Whom a password's registration may go to. It is sealed to whoever says he is the authority, so it must be known that
    /// he is: by his key, or by the certificate. Source: RFC 9807 §10.3 asks for an authenticated channel.
    func trustForPasswords() throws(ClientProblem) -> AuthorityRoutes.Trust {
        if authorityKey != nil { return .authority }
        guard channel == .pinned, transport == .tls else {
            throw .incomplete(
                "neither the authority's key is known nor its certificate pinned: whoever is in between could take the password"
            )
        }
        return .authorityIfKnown
    }
}

extension Installation {
    /// Whether what comes over the connection is the authority's or its backend's, though no key says so: there is one certificate
    /// that will do. Where the authority's key is known, that counts and nothing else.
    var connectionVouches: Bool { authorityKey == nil && channel == .pinned && transport == .tls }

    /// Whether a request is for one of the authority's own routes, which no backend answers.
    func isOwn(_ draft: Draft) -> Bool { draft.target.starts(with: "\(prefix)/".utf8) }

    /// Whom a secret may go to that whoever reads it can use. The authority's key does not help here: it says who answered, when the
    /// secret is with whoever listened.
    func trustForBearerSecrets() throws(ClientProblem) -> AuthorityRoutes.Trust {
        guard transport == .tls else {
            throw .incomplete("passwords and tokens are sent over TLS only; the server's URL begins with http://")
        }
        guard channel == .pinned || bearerSecrets == .toAnyCertificateThatVerifies else {
            throw .certificateNotPinned
        }
        guard channel == .pinned || authorityKey != nil else {
            throw .incomplete(
                "neither the authority's key is known nor its certificate pinned: no answer could be believed")
        }
        return .authorityIfKnown
    }
}

extension JSONValue {
    /// Bytes as the routes have them: base64url without padding.
    static func bytes(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, .url)) }
}
