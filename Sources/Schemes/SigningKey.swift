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

/// A key prepared for use: a keyed hash state, or a library's context, is prepared once and copied for each
/// message.
///
/// The algorithm is part of the key. A shared secret never verifies as a public key, nor a public key as a
/// shared secret: a MAC under the public key's bytes fails, because the shared secret of a key pair is random
/// and unknown to every caller.
package final class SigningKey: Sendable {
    private enum Pair: Sendable {
        case none
        case publicHalf(PublicKey)
        case both(PrivateKey)
    }

    package let algorithm: KeyAlgorithm
    /// The shared secret. For a key pair: fresh random bytes that no client has.
    package let secret: Secret
    private let hmac: HMACSHA256
    let derived: DerivedKeyCache
    private let pair: Pair

    package convenience init(_ secret: Secret) {
        self.init(algorithm: .hmacSHA256, secret: secret, pair: .none)
    }

    /// A key that verifies and does not sign.
    package convenience init(_ key: PublicKey) {
        self.init(algorithm: key.algorithm, secret: Secret(random: 32), pair: .publicHalf(key))
    }

    package convenience init(_ key: PrivateKey) {
        self.init(algorithm: key.algorithm, secret: Secret(random: 32), pair: .both(key))
    }

    private init(algorithm: KeyAlgorithm, secret: Secret, pair: Pair) {
        self.algorithm = algorithm
        self.secret = secret
        self.pair = pair
        hmac = secret.withExposedBytes { HMACSHA256(key: $0) }
        derived = DerivedKeyCache(secret)
    }

    /// Whether a public key verifies, and no shared secret.
    package var isOfKeyPair: Bool { if case .none = pair { false } else { true } }

    /// The public key that verifies; nil for a shared secret.
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

    /// Records whether the MAC of `text` that was just computed equals the sent one.
    package func recordVerdict(
        _ verdict: ConstantTime.Verdict, algorithm: MACAlgorithm, of text: borrowing StringToSign
    ) {
        if algorithm == .sigV4 { derived.recordVerdict(verdict, of: text.bytes.span) }
    }

    /// The signature of `text` by the key's own algorithm.
    package func sign(_ text: borrowing StringToSign) throws(Refusal) -> [UInt8] {
        switch pair {
        case .none: return mac(.ofKey, of: text).array
        case .publicHalf:
            throw Refusal(.malformed, detail: "a public key does not sign; expected the private one")
        case .both(let key):
            guard let signature = key.sign(text.bytes.span) else {
                throw Refusal(.malformed, detail: "the private key does not sign")
            }
            return signature
        }
    }
}

/// The signer's data that a scheme needs beside the request.
package struct Credentials: Sendable {
    package var keyID: KeyID
    package var key: SigningKey
    /// message-signatures: the calling release if the key id is a session token; nil if the key id names the
    /// release itself.
    package var release: KeyID?
    /// Schemes that name the app's platform and version in each request; otherwise unused.
    package var platform: String
    package var version: String
    /// Seconds east of UTC of the wall clock that form-md5 sends.
    package var timezoneOffset: Int

    /// form-md5: where the private key stands in the string to sign.
    package var formMD5Key = FormMD5.KeyPosition.pair

    /// sigv4's scope: words that both ends agree on, signed and otherwise without meaning here.
    package var region = "countersign"
    package var service = "execute-api"

    /// A session's: `token` as its key id, beside the release that calls.
    package init(_ token: SessionToken, key: SigningKey, release: KeyID) {
        self.init(keyID: KeyID(token), key: key)
        self.release = release
    }

    package init(
        keyID: KeyID, key: SigningKey, platform: String = "", version: String = "", timezoneOffset: Int = 0
    ) {
        self.keyID = keyID
        self.key = key
        self.platform = platform
        self.version = version
        self.timezoneOffset = timezoneOffset
    }
}

/// A new nonce for each request: letters and digits, which every scheme takes.
package enum Nonce {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// As long as the scheme's own clients have it: 22 characters are 130 bits, form-md5's 16 are 95.
    package static func make(for scheme: SchemeName, random: some RandomSource = SystemRandom()) -> String {
        let count = scheme.traits.nonceLength
        var letters: [UInt8] = []
        while letters.count < count {
            // 248 is the largest multiple of 62 in a byte: what lies above would favour some letters.
            for byte in random.bytes(count) where byte < 248 && letters.count < count {
                letters.append(alphabet[Int(byte) % alphabet.count])
            }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}
