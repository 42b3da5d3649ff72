import CountersignSchemes
import CountersignWire

/// Fields that an app's policy wants sent and signed, beyond those of the scheme itself (policy `cover`).
struct RequiredFields: Sendable {
    /// Lower-case, as the parser leaves field names. In order, so that a refusal names the same one each time.
    private let names: [[UInt8]]

    init(_ names: Set<String>) { self.names = names.sorted().map { Array($0.utf8) } }

    /// After the signature held: which fields it covers is only then more than a claim.
    func check(_ request: Request, _ claim: Claim) throws(Refusal) {
        for name in names { try check(name, request, claim) }
    }

    /// Each line of the field counts: one that is not covered could have been put in on the way.
    private func check(_ name: [UInt8], _ request: Request, _ claim: Claim) throws(Refusal) {
        // That nothing is held back for want of a signature does not mean that anything was signed.
        guard case .only = claim.coveredFields else {
            throw Refusal(
                .badSignature,
                "\(claim.scheme.rawValue) signs no fields, and the policy asks for \(RequiredFields.quoted(name))")
        }
        var isSent = false
        for index in request.fields.indices
        where request.head.span.extracting(request.fields[index].name.range).matches(name.span) {
            guard claim.coveredFields.contains(index) else {
                throw Refusal(
                    .badSignature,
                    "the signature does not cover \(RequiredFields.quoted(name)), which the policy asks for")
            }
            isSent = true
        }
        guard isSent else {
            throw Refusal(.badSignature, "\(RequiredFields.quoted(name)) is not sent, and the policy asks for it")
        }
    }

    private static func quoted(_ name: [UInt8]) -> String { "\"\(name.span.text)\"" }
}
