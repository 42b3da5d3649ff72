/// What a key is made for. A key has one algorithm for life: what a message says of itself never chooses.
/// Names: the registry of RFC 9421 §6.2.2.
package enum KeyAlgorithm: String, Sendable, CaseIterable {
    case hmacSHA256 = "hmac-sha256"
    case ed25519
    case ecdsaP256 = "ecdsa-p256-sha256"
    case ecdsaP384 = "ecdsa-p384-sha384"
    case rsaPSS = "rsa-pss-sha512"
    /// Verified where an app's policy allows it, and never made here.
    case rsaV15 = "rsa-v1_5-sha256"

    /// The algorithm of that name; nil where the registry has none that is known here.
    package init?(_ name: borrowing Span<UInt8>) {
        switch name.count {
        case 7 where name.matches("ed25519"): self = .ed25519
        case 11 where name.matches("hmac-sha256"): self = .hmacSHA256
        case 14 where name.matches("rsa-pss-sha512"): self = .rsaPSS
        case 15 where name.matches("rsa-v1_5-sha256"): self = .rsaV15
        case 17 where name.matches("ecdsa-p256-sha256"): self = .ecdsaP256
        case 17 where name.matches("ecdsa-p384-sha384"): self = .ecdsaP384
        default: return nil
        }
    }
}

extension Span<UInt8> {
    fileprivate func matches(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where self[index] != text.utf8Start[index] { return false }
        return true
    }
}

/// What a key is set up to do.
enum KeyPurpose { case verify, sign }

/// Why a key cannot be used: one sentence for a person, without any of the key's bytes.
package struct KeyProblem: Error, Sendable, Equatable {
    package let expected: String

    init(_ expected: String) { self.expected = expected }
}
