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

    /// Whether the scheme can tell a second copy of a request from the first.
    enum Replay { case told, impossible }

    /// Source: docs/protocol.md, "What counts as the same request".
    var replay: Replay {
        switch scheme {
        case .messageSignatures, .formMD5, .sigV4, .authV1: .told
        case .authV2, .authV4, .token: .impossible
        }
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
            switch (shape, scheme) {
            case (.bare, _): return draft(method: "GET", target: target, mark: mark)
            case (.withBody, .formMD5):
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
