/// The schemes by their public names. Source: docs/protocol.md; a name never changes.
package enum SchemeName: String, Sendable, CaseIterable {
    case messageSignatures = "message-signatures"
    case sigV4 = "sigv4"
    case formMD5 = "form-md5"
    case authV1 = "auth-v1"
    case authV2 = "auth-v2"
    case authV4 = "auth-v4"
    /// The authority's token without a signature: no ``Scheme`` has this name, because nothing is signed.
    case token

    /// The type that states the scheme's traits. A new scheme adds itself here and to
    /// ``SchemeRegistry/standard``; CONTRIBUTING.md, "Add a scheme", lists the other places.
    package var definition: any SchemeDefinition.Type {
        switch self {
        case .messageSignatures: MessageSignatures.self
        case .sigV4: SigV4.self
        case .formMD5: FormMD5.self
        case .authV1: AuthV1.self
        case .authV2: AuthV2.self
        case .authV4: AuthV4.self
        case .token: TokenAlone.self
        }
    }

    /// Those that sign.
    package static let signing = SchemeRegistry.standard.schemes.map(\.name)

    package var traits: SchemeTraits { SchemeName.allTraits[index] }

    private static let allTraits = SchemeName.allCases.map { $0.definition.traits }

    /// Its place in ``allCases``.
    private var index: Int {
        switch self {
        case .messageSignatures: 0
        case .sigV4: 1
        case .formMD5: 2
        case .authV1: 3
        case .authV2: 4
        case .authV4: 5
        case .token: 6
        }
    }

    /// Nil for a scheme that signs nothing.
    package var layout: SchemeLayout? { definition.layout }

    package var isLegacy: Bool { traits.purpose == .legacy }

    /// The largest distance from now, in whole seconds, that is fresh under a window of `seconds`.
    package func freshSeconds(within seconds: Int) -> Int {
        switch traits.windowEnd {
        case .included: max(seconds, 0)
        case .excluded: max(seconds - 1, 0)
        case .none: 0
        }
    }
}

/// What a scheme states of itself, without a value of it.
package protocol SchemeDefinition {
    static var traits: SchemeTraits { get }
    static var layout: SchemeLayout? { get }
}

/// The scheme `token`: a live token without a signature.
package enum TokenAlone: SchemeDefinition {
    /// `token` signs no time, so no time is fresh under any window. Its number is reserved and never written.
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 7, purpose: .legacy, defaultWindow: 0, windowEnd: .none,
            replayDetection: .impossible)
    }

    package static var layout: SchemeLayout? { nil }
}
