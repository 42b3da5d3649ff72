/// The schemes by their public names. Source: the interface's fixed list.
package enum SchemeName: String, Sendable, CaseIterable {
    case messageSignatures = "message-signatures"
    case sigV4 = "sigv4"
    case formMD5 = "form-md5"
    case authV1 = "auth-v1"
    case authV2 = "auth-v2"
    case authV4 = "auth-v4"
    /// The authority's token without a signature: no ``Scheme`` has this name, because nothing is signed.
    case token

    /// Those that sign.
    package static let signing: [SchemeName] = [
        .messageSignatures, .sigV4, .formMD5, .authV1, .authV2, .authV4,
    ]

    /// Whether the scheme exists only for app versions already in use, and will be removed with them.
    package var isLegacy: Bool {
        switch self {
        case .messageSignatures, .sigV4: false
        case .formMD5, .authV1, .authV2, .authV4, .token: true
        }
    }

    /// Whether the scheme signs form parameters, which may be in the body.
    package var signsParameters: Bool {
        switch self {
        case .formMD5, .authV1, .authV2: true
        case .messageSignatures, .sigV4, .authV4, .token: false
        }
    }

    /// Seconds either side of now within which a signature of this scheme is fresh, where no policy says
    /// otherwise.
    package var defaultWindow: Int {
        switch self {
        case .messageSignatures: 60
        case .sigV4: 300
        case .formMD5: 300
        case .authV1: 600
        case .authV2, .authV4: 12 * 3600
        // The scheme signs no time.
        case .token: 0
        }
    }

    /// How many whole seconds either side of now are still fresh under a window of `seconds`: the auth
    /// schemes refuse *at* their window, the others beyond it.
    package func freshSeconds(within seconds: Int) -> Int {
        switch self {
        case .messageSignatures, .sigV4, .formMD5: max(seconds, 0)
        case .authV1, .authV2, .authV4: max(seconds - 1, 0)
        case .token: 0
        }
    }
}
