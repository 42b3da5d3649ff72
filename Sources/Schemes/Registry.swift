import CountersignWire

/// The schemes that are spoken here.
package struct Registry: Sendable {
    package let schemes: [any Scheme]

    package init(_ schemes: [any Scheme]) { self.schemes = schemes }

    /// Every scheme there is; an app's policy says which of them may speak for it.
    package static let standard = Registry([MessageSignatures(), FormMD5()])

    package func scheme(named name: SchemeName) -> (any Scheme)? {
        for scheme in schemes where scheme.name == name { return scheme }
        return nil
    }

    /// The claim of the one scheme whose signs the request bears. With two, somebody could choose by which of them it
    /// is judged; so that is refused.
    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim {
        var found: Claim?
        for scheme in schemes {
            guard let claim = try scheme.claim(in: request, &workspace) else { continue }
            if let found {
                throw Refusal(
                    .malformed,
                    "signs of two schemes, \(found.scheme.rawValue) and \(claim.scheme.rawValue); expected one")
            }
            found = claim
        }
        if let found { return found }
        for scheme in schemes where scheme.trace(in: request) == .outOfReach {
            throw Refusal(.tooLarge, "\(scheme.name.rawValue) signs inside the body, which is too large to be held")
        }
        throw Refusal(.unsigned, "no Signature-Input, and no parameters of a legacy scheme")
    }

    /// How to answer this request, whatever becomes of it.
    package func dialect(for request: Request) -> AnswerDialect {
        var fallback = AnswerDialect.problem
        for scheme in schemes {
            switch scheme.trace(in: request) {
            case .present: return scheme.dialect
            case .outOfReach: fallback = scheme.dialect
            case .absent: continue
            }
        }
        return fallback
    }
}
