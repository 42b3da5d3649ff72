import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One version of an app on one device, with the authority that it talks to.
package struct Installation: Sendable {
    /// The authority's host, with its port unless that is the default: the `Host` field of the requests.
    package var host: String
    package var transport: Request.Transport
    /// The path prefix of the authority's own routes.
    package var prefix = Installation.standardPrefix
    /// The release key.
    package var release: Credentials
    /// The app's name; nil if the client learns it from the authority.
    package var app: String?
    /// Verifies what the authority signs for callers without a session; nil if it is not known.
    package var authorityKey: SigningKey?
    /// The one that follows it at a rotation; nil if it is not known.
    package var nextAuthorityKey: SigningKey?
    package var userAgent: String
    /// Whether the connection itself authenticates the authority, so that a sign-up does not need the
    /// authority's key.
    package var channel: Channel
    package var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate

    package enum Channel: Sendable {
        /// A certificate is pinned for this authority; the client accepts no other.
        case pinned
        /// Any certificate that a trusted authority of the system issued, or no TLS at all.
        case open
    }

    /// Where the client may send a password or a bearer token.
    package enum BearerSecrets: Sendable {
        case onlyToThePinnedCertificate
        /// Also to a server whose certificate is issued by any authority that the system trusts.
        case toAnyCertificateThatVerifies
        /// Also without TLS, to a legacy server alone: every party on the path can read them. To an authority
        /// the same as ``onlyToThePinnedCertificate``.
        case inTheClearToWhoeverListens
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
    func draft(_ method: String, path: String, body: JSONValue? = nil) -> Draft {
        var draft = Draft(
            method: method, target: Array("\(prefix)\(path)".utf8), authority: host, transport: transport)
        draft.fields = [
            Draft.Field(name: "User-Agent", value: userAgent),
            Draft.Field(name: "Accept", value: "application/json"),
        ]
        if let body {
            draft.setField("Content-Type", to: "application/json")
            draft.body = body.bytes
        }
        return draft
    }
}

/// The client's dependencies.
package struct ClientEnvironment: Sendable {
    package var transport: any Transport
    package var keeper: StateKeeper
    package var time: any ClientTime
    package var random: any RandomSource
    /// Signs for the device if its key is bound to presence and the user is present.
    package var signer: (any DeviceSigner)?
    /// Where an OPAQUE login notes its account; nil if it notes nothing.
    package var opaqueAccounts: OpaqueAccounts?
    /// The parameters that every device of a deployment uses. Only this module and its tests set it: a record
    /// made with cheaper parameters is cheaper to guess.
    var stretching = KeyStretchingFunction.standard

    /// `keeper` is the only one of the client.
    package init(
        transport: any Transport, keeper: StateKeeper, time: any ClientTime, random: any RandomSource
    ) {
        self.transport = transport
        self.keeper = keeper
        self.time = time
        self.random = random
    }

    /// Draws the idempotency key for a request, 16 random bytes in base64url; nil if the method is safe, or
    /// if the request has a key. No other function draws one. Source: docs/protocol.md, "Idempotent
    /// requests".
    package func idempotencyKey(for method: String, isKeyed: @autoclosure () -> Bool) -> String? {
        guard !Draft.isSafe(method), !isKeyed() else { return nil }
        return Base64.encode(random.bytes(16).span, as: .url)
    }

    /// Adds the key to a request that needs one; all copies of the request carry the same.
    func addIdempotencyKey(to draft: inout Draft) {
        guard let key = idempotencyKey(for: draft.method, isKeyed: draft.isKeyed) else { return }
        draft.setField("Idempotency-Key", to: key)
    }
}

extension Draft {
    /// Whether a request of this method has no effects. Source: RFC 9110 §9.2.1.
    package static func isSafe(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// Whether the method only reads. A request of another method without a key is never repeated: a backend
    /// may do anything on OPTIONS, and the server guards its copies like those of a POST.
    var isRead: Bool { ["GET", "HEAD"].contains(method) }

    /// Whether the server can recognize a second copy.
    var isKeyed: Bool { fields.contains { $0.isNamed("idempotency-key") } }
}

/// Two clocks: the device's clock, which may be wrong, and a monotonic clock.
package protocol ClientTime: Sendable {
    /// Whole Unix seconds, from the device's clock.
    var now: Int64 { get }
    /// Milliseconds from an arbitrary start; never goes back.
    var milliseconds: Int64 { get }
}

extension Installation {
    /// What must prove the authority before it receives a password's registration. The registration is sealed
    /// to the authority, so the client must know it is the authority: by its key or by the certificate.
    /// Source: RFC 9807 §10.3 requires an authenticated channel.
    func requiredProofForPasswords() throws(ClientOperationError) -> AuthorityRoutes.RequiredProof {
        if authorityKey != nil { return .authoritySignature }
        guard channel == .pinned, transport == .tls else {
            throw .incomplete(
                """
                neither the authority's key is known nor its certificate pinned: an attacker on the network \
                path could take the password
                """
            )
        }
        return .authoritySignatureIfKeyKnown
    }
}

extension Installation {
    /// Whether the connection proves that a response comes from the authority or its backend, without a key:
    /// the certificate is pinned. If the authority's key is known, only that counts.
    var connectionVouches: Bool { authorityKey == nil && channel == .pinned && transport == .tls }

    /// Whether a request is for one of the authority's own routes, which no backend answers.
    func isOwn(_ draft: Draft) -> Bool { draft.target.starts(with: "\(prefix)/".utf8) }

    /// What must prove the authority before it receives a bearer secret. The authority's key is not enough
    /// here: it proves the sender of a response, but by then a listener has read the secret.
    func requiredProofForBearerSecrets() throws(ClientOperationError) -> AuthorityRoutes.RequiredProof {
        guard transport == .tls else {
            throw .incomplete(
                "passwords and tokens are sent over TLS only; the server's URL begins with http://")
        }
        guard channel == .pinned || bearerSecrets == .toAnyCertificateThatVerifies else {
            throw .certificateNotPinned
        }
        guard channel == .pinned || authorityKey != nil else {
            throw .incomplete(
                "neither the authority's key is known nor its certificate pinned: no answer could be believed"
            )
        }
        return .authoritySignatureIfKeyKnown
    }
}

/// The app's name at the authority: OPAQUE's server identity, and so a part of every proof.
///
/// If it is not configured, the client takes it from the response to `login/start`. A false name makes the
/// login fail and gains an attacker nothing: the proof binds the release as well, and a registration's name
/// cannot change later.
struct AppIdentity {
    /// The configured name, or the one learnt before.
    let name: String?

    init(_ installation: Installation, state: PersistedState) { name = installation.app ?? state.app }

    /// The name to use.
    func resolved(by answer: ResponseFields) throws(ClientOperationError) -> String {
        let told = answer.optionalText("app")
        switch (name, told) {
        case (let known?, nil): return known
        case (let known?, let told?):
            guard known.utf8.elementsEqual(told.utf8) else {
                throw .notGenuine("the server calls the app `\(told)`; expected `\(known)`")
            }
            return known
        case (nil, let told?) where !told.isEmpty: return told
        case (nil, _): throw .incomplete("the app's name is not known, and the server does not tell it")
        }
    }
}
