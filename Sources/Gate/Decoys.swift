import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Keys that nobody holds, for ids that nobody has: to verify with one takes as long as with a real one of the kind that the
/// signature looks like. P-384 and RSA have none; that one of their ids is unknown can be told by the time it takes, and is
/// told by the answer as well.
struct Decoys: Sendable {
    private let shared = SigningKey(Secret(random: 32))
    private let ed25519: SigningKey
    private let p256: SigningKey

    init() {
        ed25519 = Decoys.pair(.ed25519) ?? shared
        p256 = Decoys.pair(.ecdsaP256) ?? shared
    }

    private static func pair(_ algorithm: KeyAlgorithm) -> SigningKey? {
        guard let pair = try? PrivateKey(random: algorithm) else { return nil }
        return SigningKey(pair.publicKey)
    }

    /// By the algorithm that the message names, else by how long its signature is.
    func key(for claim: Claim) -> SigningKey {
        guard claim.algorithm == .ofKey else { return shared }
        switch claim.namedAlgorithm {
        case .ed25519: return ed25519
        case .ecdsaP256: return p256
        case nil: return claim.mac.count == Ed25519.signatureCount ? ed25519 : shared
        default: return shared
        }
    }
}
