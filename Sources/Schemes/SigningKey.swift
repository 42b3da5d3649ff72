import CountersignSeal
import CountersignWire

/// A MAC as sent or as computed.
package typealias MAC = ShortBytes

/// How a scheme turns its string to sign into a MAC.
package enum MACAlgorithm: Sendable, Equatable {
    case hmacSHA256
    /// MD5 of the string with the secret written into it, at ``StringToSign/secretOffset``.
    case md5OverSecret
    /// HMAC-SHA256 under a key derived for the day, region and service that the string names.
    case sigV4
    /// Whatever the key is made for: hmac-sha256 for a shared secret, its own algorithm for a key pair.
    case ofKey
}

/// A key made ready for use: a keyed hash state, or a library's context, is prepared once and copied for each message.
///
/// Its algorithm is part of it. A shared secret never verifies as a public key, nor a public key as a shared secret:
/// whoever sends the public key's bytes as if they were the secret finds another secret there, which nobody has.
package final class SigningKey: Sendable {
    private enum Pair: Sendable {
        case none
        case publicHalf(PublicKey)
        case both(PrivateKey)
    }

    package let algorithm: KeyAlgorithm
    /// The shared secret. For a key pair: random bytes that were just made and are nobody's.
    package let secret: Secret
    private let hmac: HMACSHA256
    let derived: DerivedKeys
    private let pair: Pair

    package convenience init(_ secret: Secret) { self.init(.hmacSHA256, secret, .none) }

    /// A key that verifies and does not sign.
    package convenience init(_ key: PublicKey) { self.init(key.algorithm, Secret(random: 32), .publicHalf(key)) }

    package convenience init(_ key: PrivateKey) { self.init(key.algorithm, Secret(random: 32), .both(key)) }

    private init(_ algorithm: KeyAlgorithm, _ secret: Secret, _ pair: Pair) {
        self.algorithm = algorithm
        self.secret = secret
        self.pair = pair
        hmac = secret.withExposedBytes { HMACSHA256(key: $0) }
        derived = DerivedKeys(secret)
    }

    /// What verifies, where this is no shared secret.
    package var publicKey: PublicKey? {
        switch pair {
        case .none: nil
        case .publicHalf(let key): key
        case .both(let key): key.publicKey
        }
    }

    /// Whether it can sign: a public key cannot.
    package var signs: Bool { if case .publicHalf = pair { false } else { true } }

    /// The MAC of `text` under the shared secret.
    package func mac(_ algorithm: MACAlgorithm, of text: borrowing StringToSign) -> MAC {
        switch algorithm {
        case .hmacSHA256, .ofKey:
            return MAC(hmac.authenticate(text.bytes.span))
        case .sigV4:
            return derived.mac(of: text.bytes.span)
        case .md5OverSecret:
            let bytes = text.bytes.span
            var hash = MD5()
            hash.update(bytes.extracting(0..<text.secretOffset))
            secret.withExposedBytes { hash.update($0) }
            hash.update(bytes.extracting(text.secretOffset..<bytes.count))
            return MAC(hash.finish())
        }
    }

    /// Learns whether the MAC of `text`, just computed, was the one that was sent.
    package func settle(
        _ verdict: ConstantTime.Verdict, _ algorithm: MACAlgorithm, of text: borrowing StringToSign
    ) {
        if algorithm == .sigV4 { derived.settle(verdict, of: text.bytes.span) }
    }

    /// The signature of `text` by the key's own algorithm.
    package func sign(_ text: borrowing StringToSign) throws(Refusal) -> [UInt8] {
        switch pair {
        case .none: return mac(.ofKey, of: text).array
        case .publicHalf: throw Refusal(.malformed, "a public key does not sign; expected the private one")
        case .both(let key):
            guard let signature = key.sign(text.bytes.span) else {
                throw Refusal(.malformed, "the private key does not sign")
            }
            return signature
        }
    }
}
