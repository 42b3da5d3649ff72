import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire

/// The deployment to check, as its operator describes it.
package struct SelfTestSubject: Sendable {
    /// The endpoint of requests that are to be accepted.
    package enum Endpoint: Sendable, Equatable {
        /// To the backend, at this target: GET and POST.
        case backend([UInt8])
        /// A route of the authority that verifies a release's signature and has no effect for an invented
        /// login token.
        case ownRoute
    }

    package var origin: Origin
    package var trust: Trust
    package var authorities: TransportOptions.Authorities
    package var scheme: SchemeName
    package var credentials: Credentials
    /// The secret as given; no response may contain it.
    package var secretText: [UInt8]
    /// Ed25519, 32 bytes; nil where it was not given.
    package var authorityKey: [UInt8]?
    /// The key that the server rotates to; the same.
    package var nextAuthorityKey: [UInt8]?
    package var endpoint: Endpoint
    /// The path prefix of the authority's routes.
    package var prefix: String
    /// Seconds from now within which a signature is fresh.
    package var window: Int

    package init(
        origin: Origin, trust: Trust, authorities: TransportOptions.Authorities, scheme: SchemeName,
        credentials: Credentials, secretText: [UInt8], place: Endpoint
    ) {
        self.origin = origin
        self.trust = trust
        self.authorities = authorities
        self.scheme = scheme
        self.credentials = credentials
        self.secretText = secretText
        self.endpoint = place
        prefix = "/countersign/v1"
        window = scheme.traits.defaultWindow
    }

    /// The greatest whole number of seconds before or after now at which a signature is fresh.
    var freshSeconds: Int64 { Int64(scheme.freshSeconds(within: window)) }

    /// Whether the scheme can tell a second copy of a request from the first. Source: docs/protocol.md, "What
    /// counts as the same request".
    var canDetectReplay: Bool { scheme.traits.replayDetection != .impossible }

    /// What the self-test knows of the scheme; throws for one that signs nothing.
    func signingScheme() throws(OperationalError) -> any SelfTestScheme {
        guard let selfTest = scheme.selfTest else {
            throw OperationalError(.failed, message: "cannot be staged: \(scheme.rawValue) signs nothing")
        }
        return selfTest
    }

    var transport: Request.Transport { origin.security == .tls ? .tls : .plain }
}

/// The kinds of request. Each draft contains eight random bytes, so that no two are equal: schemes without a
/// nonce compare whole requests.
enum RequestShape: Sendable {
    /// GET; on the authority's own route there is only POST.
    case bare
    case withBody
}

extension SelfTestSubject {
    func draft(_ shape: RequestShape) -> Draft {
        let mark = Hex.encode(SystemRandom().bytes(8).span)
        switch endpoint {
        case .ownRoute:
            var draft = draft(method: "POST", target: Array("\(prefix)/token".utf8), mark: mark)
            // A well-formed login token that belongs to no account.
            draft.body = Array("{\"login_token\":\"l_\(String(repeating: "A", count: 43))\"}".utf8)
            draft.setField("Content-Type", to: "application/json")
            return draft
        case .backend(let target):
            switch (shape, scheme.traits.signedParameters) {
            case (.bare, _): return draft(method: "GET", target: target, mark: mark)
            case (.withBody, .form):
                // Such a scheme signs the query or the form, never both.
                var draft = Draft(
                    method: "POST", target: target, authority: origin.authority, transport: transport)
                draft.body = Array("selftest=\(mark)".utf8)
                draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
                return draft
            case (.withBody, _):
                var draft = draft(method: "POST", target: target, mark: mark)
                draft.body = Array("{\"selftest\":\"\(mark)\"}".utf8)
                draft.setField("Content-Type", to: "application/json")
                return draft
            }
        }
    }

    private func draft(method: String, target: [UInt8], mark: String) -> Draft {
        let joint = target.contains(UInt8(ascii: "?")) ? "&" : "?"
        return Draft(
            method: method, target: target + Array("\(joint)selftest=\(mark)".utf8),
            authority: origin.authority,
            transport: transport)
    }
}
