import CountersignSchemes
import CountersignWire

/// A usual way of signing something else than was sent, and how to undo it. Each is tried: the one under
/// which the signature holds is the cause, so that a forged request has none.
struct Mistake: Sendable {
    /// Stable. Source: docs/explain.md.
    let code: String
    /// What happened, in the past tense.
    let sentence: String
    /// What to do about it.
    let remedy: String
    /// Where it can happen.
    let schemes: Set<SchemeName>
    /// What `correction` reads.
    let scope: Scope
    let correction: Correction

    enum Correction: Sendable {
        /// Requests that the signer may have had before it when another one was sent.
        case request(@Sendable (Draft) -> [Draft])
        /// Strings to sign that the signer may have spelled where the scheme spells another.
        case text(@Sendable (SigningInput) -> [SigningString])
        /// Secrets that the signer may have used for the one that is right.
        case secret(@Sendable ([UInt8]) -> [[UInt8]])
        /// MACs that the signer may have made of the right text with the right secret.
        case mac(@Sendable (SigningInput, _ secret: [UInt8]) -> [AlternativeMAC])
        /// A request that cannot be read, made readable.
        case repair(@Sendable (Draft, SchemeName) -> [Repair])
    }

    init(
        code: String, sentence: String, remedy: String,
        schemes: Set<SchemeName> = Set(SchemeName.signing), scope: Scope = .head, correction undo: Correction
    ) {
        self.code = code
        self.sentence = sentence
        self.remedy = remedy
        self.schemes = schemes
        self.scope = scope
        self.correction = undo
    }

    /// Every mistake that is known, the likelier of two that look alike first.
    static let all: [Mistake] = {
        // A sum of twelve arrays takes the type checker seconds; a list of lists takes none.
        let groups: [[Mistake]] = [
            keys, stringsToSign, sigV4, auth, paths, queries, hosts, fields, bodies, parameters, algorithms,
            repairs,
        ]
        return groups.flatMap(\.self)
    }()

    static func mistakes(for scheme: SchemeName) -> [Mistake] { all.filter { $0.schemes.contains(scheme) } }
}

/// A string to sign, and where its secret goes if it has a place for one.
struct SigningString: Sendable, Equatable {
    var bytes: [UInt8]
    var secretAt = 0

    /// The same with `old` spelled as `new`, and the place of the secret moved along.
    func replacing(_ old: [UInt8], with new: [UInt8]) -> SigningString {
        SigningString(
            bytes: Array(bytes[..<secretAt]).replacing(old, with: new)
                + Array(bytes[secretAt...]).replacing(old, with: new),
            secretAt: Array(bytes[..<secretAt]).replacing(old, with: new).count)
    }
}

/// A string to sign with what it was spelled from.
struct SigningInput: Sendable {
    let scheme: SchemeName
    let claim: Claim
    let draft: Draft
    let text: SigningString
    /// sigv4: what the string to sign ends in the hash of; otherwise empty.
    var canonicalRequest: [UInt8] = []

    /// The same request with another string to sign.
    func with(_ text: SigningString) -> SigningInput {
        SigningInput(
            scheme: scheme, claim: claim, draft: draft, text: text, canonicalRequest: canonicalRequest)
    }
}

/// A MAC made in another way than the key's.
struct AlternativeMAC: Sendable {
    let name: String
    let bytes: [UInt8]
}

/// A request that can be read, in which `written` stands where the caller sent `original`.
struct Repair: Sendable {
    var draft: Draft
    var written: [UInt8]
    var original: [UInt8]
}
