import CountersignSchemes
import CountersignWire

/// Which of several signatures counts: the one that the message marks, unless the policy of its key's app names another.
extension Candidate {
    /// The label to read instead of the claim's; nil where that one counts. A message that leaves the choice open, to a
    /// policy that makes none, is refused.
    func otherLabel(than claim: Claim, in request: Request) throws(Refusal) -> String? {
        guard let release else { return try claim.refuseIfOpen() }
        return try release.allowance.otherLabel(than: claim, in: request)
    }
}

extension Allowance {
    func otherLabel(than claim: Claim, in request: Request) throws(Refusal) -> String? {
        guard let label else { return try claim.refuseIfOpen() }
        return request.head[claim.label.range].elementsEqual(label.utf8) ? nil : label
    }
}

extension Claim {
    fileprivate func refuseIfOpen() throws(Refusal) -> String? {
        if choice == .made { return nil }
        throw Refusal(.malformed, "several signatures, none with tag=\"countersign\": which one is meant?")
    }
}

extension Registry {
    /// The claim of the signature with that label, in a request that the scheme has claimed already.
    func claim(
        in request: Request, labelled label: String, _ scheme: SchemeName, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim {
        guard let claim = try self.scheme(named: scheme)?.claim(in: request, labelled: label, &workspace) else {
            throw Refusal(.unsigned)
        }
        return claim
    }
}
