import CountersignSchemes
import CountersignTransport
import CountersignTrust
import CountersignWire

/// A deployment that is asked, and what its operator says of it.
package struct Subject: Sendable {
    /// Where requests go that are to be accepted.
    package enum Place: Sendable, Equatable {
        /// To the backend, at this target: GET and POST.
        case backend([UInt8])
        /// To a route of the authority's own that judges a release's signature and, for what we send it, does nothing.
        case ownRoute
    }

    package var origin: Origin
    package var trust: Trust
    package var authorities: TransportOptions.Authorities
    package var scheme: SchemeName
    package var credentials: Credentials
    /// As it was given: must not be in any answer.
    package var secretText: [UInt8]
    /// Ed25519, 32 bytes; nil where it was not given.
    package var authorityKey: [UInt8]?
    package var place: Place
    /// Where the authority's routes begin.
    package var prefix: String
    /// Seconds from now within which a signature is fresh.
    package var window: Int

    package init(
        origin: Origin, trust: Trust, authorities: TransportOptions.Authorities, scheme: SchemeName,
        credentials: Credentials, secretText: [UInt8], place: Place
    ) {
        self.origin = origin
        self.trust = trust
        self.authorities = authorities
        self.scheme = scheme
        self.credentials = credentials
        self.secretText = secretText
        self.place = place
        prefix = "/countersign/v1"
        window = scheme.defaultWindow
    }

    /// The last whole second either side of now that is fresh.
    var freshSeconds: Int64 { Int64(scheme.freshSeconds(within: window)) }

    /// How a second copy of a request can be told from the first.
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
