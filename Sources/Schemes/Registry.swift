import CountersignWire

/// The schemes that are spoken here.
package struct Registry: Sendable {
    package let schemes: [any Scheme]

    /// At most eight.
    package init(_ schemes: [any Scheme]) { self.schemes = Array(schemes.prefix(8)) }

    /// Every scheme there is; an app's policy says which of them may speak for it.
    package static let standard = Registry([
        MessageSignatures(), SigV4(), FormMD5(), AuthV1(), AuthV2(), AuthV4(),
    ])

    package func scheme(named name: SchemeName) -> (any Scheme)? {
        for scheme in schemes where scheme.name == name { return scheme }
        return nil
    }

    /// Which of them have left signs in the request: one scan of its query, and of its form body where it has one.
    package func traces(
        in request: Request, formBodies: ParameterNames.FormBodies = .scanned
    ) -> SchemeTraces { SchemeTraces.find(in: request, schemes: schemes, formBodies: formBodies) }

    /// The same where nobody has looked for signs yet.
    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim {
        guard let claim = try claim(in: request, traces: traces(in: request), &workspace) else {
            throw Refusal(.unsigned)
        }
        return claim
    }

    /// The claim of the one scheme whose signs the request bears. With two, somebody could choose by which of them it
    /// is judged; so that is refused. `traces` are the request's own. Nil where only the body can tell, which is awaited.
    package func claim(
        in request: Request, traces: SchemeTraces, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        for index in schemes.indices {
            guard let claim = try schemes[index].claim(in: request, names: traces.names, &workspace) else { continue }
            if let other = traces.firstPresent(behind: index) {
                throw Refusal(
                    .malformed,
                    "signs of two schemes, \(claim.scheme.rawValue) and \(other.rawValue); expected one")
            }
            return claim
        }
        if let scheme = traces.firstOutOfReach {
            if request.bodyState == .awaited { return nil }
            throw Refusal(.tooLarge, "\(scheme.rawValue) signs inside the body, which is too large to be held")
        }
        throw Refusal(.unsigned, "no Signature-Input, no AWS4 Authorization, and no parameters of another scheme")
    }
}
