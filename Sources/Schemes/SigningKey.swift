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
}

/// A shared secret made ready for use: the keyed hash state is computed once, and copied for each message.
package final class SigningKey: Sendable {
    package let secret: Secret
    private let hmac: HMACSHA256
    let derived: DerivedKeys

    package init(_ secret: Secret) {
        self.secret = secret
        hmac = secret.withExposedBytes { HMACSHA256(key: $0) }
        derived = DerivedKeys(secret)
    }

    /// The MAC of `text` under this key.
    package func mac(_ algorithm: MACAlgorithm, of text: borrowing StringToSign) -> MAC {
        switch algorithm {
        case .hmacSHA256:
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
}
