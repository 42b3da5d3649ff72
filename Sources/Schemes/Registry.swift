import CountersignWire

/// The schemes that are spoken here.
package struct Registry: Sendable {
    package let schemes: [any Scheme]

    package init(_ schemes: [any Scheme]) { self.schemes = schemes }

    /// Every scheme there is; an app's policy says which of them may speak for it.
    package static let standard = Registry([
        MessageSignatures(), SigV4(), FormMD5(), AuthV1(), AuthV2(), AuthV4(),
    ])

    package func scheme(named name: SchemeName) -> (any Scheme)? {
        for scheme in schemes where scheme.name == name { return scheme }
        return nil
    }

    /// The claim of the one scheme whose signs the request bears. With two, somebody could choose by which of them it
    /// is judged; so that is refused.
    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim {
        for index in schemes.indices {
            guard let claim = try schemes[index].claim(in: request, &workspace) else { continue }
            for other in schemes[(index + 1)...] where other.trace(in: request) == .present {
                throw Refusal(
                    .malformed,
                    "signs of two schemes, \(claim.scheme.rawValue) and \(other.name.rawValue); expected one")
            }
            return claim
        }
        for scheme in schemes where scheme.trace(in: request) == .outOfReach {
            throw Refusal(.tooLarge, "\(scheme.name.rawValue) signs inside the body, which is too large to be held")
        }
        throw Refusal(.unsigned, "no Signature-Input, no AWS4 Authorization, and no parameters of another scheme")
    }

    /// How to answer this request, whatever becomes of it.
    package func dialect(for request: Request) -> AnswerDialect {
        var fallback: AnswerDialect?
        for scheme in schemes {
            switch scheme.trace(in: request) {
            case .present: return scheme.dialect
            case .outOfReach: fallback = fallback ?? scheme.dialect
            case .absent: continue
            }
        }
        return fallback ?? .problem
    }
}
