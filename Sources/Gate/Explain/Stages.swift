import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Explanation {
    /// What a claim says, the string to sign and its parts, and the digests, as people may see them.
    mutating func note(_ claim: Claim, _ request: Request, _ workspace: borrowing Workspace) {
        add("claim", Explanation.describe(claim))
        let shown = workspace.text.shown
        switch claim.scheme {
        case .messageSignatures: add("components", shown.split(separator: "\n").dropLast().joined(separator: "\n"))
        case .formMD5: add("parameters", shown.split(separator: "&").joined(separator: "\n"))
        case .authV1, .authV2, .authV4:
            let parameters = shown.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
            add("parameters", parameters.split(separator: "&").joined(separator: "\n"))
        case .sigV4: add("canonical request", workspace.canonicalRequest)
        case .token: break
        }
        add("string to sign", shown)
        if claim.scheme != .formMD5 {
            add("SHA-256 of the string to sign", Hex.encode(SHA256.digest(workspace.text.bytes.span).span))
        }
        if !request.body.isEmpty { add("SHA-256 of the body", Explanation.bodyDigest(request.body)) }
    }

    private static func describe(_ claim: Claim) -> String {
        var lines = ["scheme: \(claim.scheme.rawValue)", "key id: \(claim.keyID)"]
        switch claim.created {
        case .unix(let seconds): lines.append("created: \(seconds)")
        case .wallClock(let seconds):
            lines.append("created: \(CivilTime(seconds: seconds).description), without a zone")
        case .unsigned: lines.append("created: not said")
        }
        if let expires = claim.expires { lines.append("expires: \(expires)") }
        if case .nonce(let nonce) = claim.replay { lines.append("nonce: \(nonce.span.text)") }
        return lines.joined(separator: "\n")
    }

    private static func bodyDigest(_ body: [UInt8]) -> String {
        let digest = SHA256.digest(body.span)
        return "\(Hex.encode(digest.span)) (sha-256=:\(Base64.encode(digest.span, .standard)):)"
    }

    /// What whoever can change the request can change unseen.
    static func describe(_ coverage: Coverage) -> String {
        let parts = coverage.uncovered.map(\.rawValue).joined(separator: ", ")
        return ([parts] + coverage.weaknesses).joined(separator: "\n")
    }

    /// Who asks about the wrong scheme is told which one the request bears, or that it bears an upload ticket.
    static func absence(of scheme: SchemeName, in request: Request) -> String {
        let present = Registry.standard.schemes.filter { $0.trace(in: request) == .present }.map(\.name.rawValue)
        let hint = present.isEmpty ? "" : "; it looks signed with \(present.joined(separator: " or "))"
        if request.names.contains(.countersignTicket) {
            return "no signs of \(scheme.rawValue) in this request\(hint); it bears an upload ticket, which only the "
                + "server that issued it can judge (its log has the reason of a refusal)"
        }
        return "no signs of \(scheme.rawValue) in this request\(hint)"
    }
}
