/// Which schemes say less than others about who calls.
extension RowProfile.Scheme {
    /// Rungs of the login ladder below this one's own; all of them for who is not on the ladder.
    var weakerRungs: [RowProfile.LadderRung] {
        switch self {
        case .ladder(let rung): RowProfile.LadderRung.allCases.prefix { $0 != rung }
        case .tokens, .token, .openRoute: [.plainGet]
        case .formMD5: [.plainGet, .plainPost, .base64]
        case .messageSignaturesWithPassword, .countersign: RowProfile.LadderRung.allCases
        case .apiKey: []
        }
    }

    /// Ways of signing that leave more open, from the worst.
    var weakerSignatures: ArraySlice<RowProfile.Scheme> {
        switch self {
        case .ladder, .tokens, .token, .openRoute: []
        case .formMD5, .apiKey: Self.signatures.prefix { $0 != self }
        case .messageSignaturesWithPassword, .countersign: Self.signatures[...]
        }
    }

    /// For people.
    var label: String {
        switch self {
        case .ladder(let rung): rung.rawValue
        case .formMD5: "form-md5"
        case .apiKey(let scheme): scheme.rawValue
        case .tokens: "tokens"
        case .token: "token"
        case .openRoute: "open-route"
        case .messageSignaturesWithPassword, .countersign: "message-signatures"
        }
    }

    private static let signatures: [RowProfile.Scheme] = [
        .formMD5, .apiKey(.authV2), .apiKey(.authV4), .apiKey(.authV1), .apiKey(.sigV4),
    ]
}

extension RowProfile {
    /// Whether a server that takes an unsigned request takes less than the app sends.
    var signsRequests: Bool {
        switch scheme {
        case .formMD5, .apiKey, .messageSignaturesWithPassword, .countersign: true
        case .ladder, .tokens: server != .reference
        case .token, .openRoute: false
        }
    }
}
