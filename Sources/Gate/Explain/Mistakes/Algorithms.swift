import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// The right text and the right secret, put together otherwise.
    static let algorithms = [
        Mistake(
            "wrong-algorithm", "the string to sign was signed with another algorithm",
            mend: "use the algorithm of the scheme and the key: HMAC-SHA256, for form-md5 plain MD5",
            .mac { spelling, secret in
                let text = spelling.text
                let message = Array(text.bytes[..<text.secretAt]) + Array(text.bytes[text.secretAt...])
                let whole =
                    Array(text.bytes[..<text.secretAt]) + (text.secretAt > 0 ? secret : [])
                    + text.bytes[text.secretAt...]
                return OtherHash.allCases.flatMap { hash in
                    let keyed = [message, whole].map { hash.hmac(key: secret.span, $0.span) }
                    var plain = [(secret + message, ", the secret first"), (message + secret, ", the secret last")]
                    // Without the secret in it a hash is anybody's, and no evidence.
                    if text.secretAt > 0 { plain.append((whole, "")) }
                    return keyed.map { OtherMAC(name: "HMAC-\(hash.rawValue)", bytes: $0) }
                        + plain.map { OtherMAC(name: "plain \(hash.rawValue)\($0.1)", bytes: hash.digest($0.0.span)) }
                }
            }),
        Mistake(
            "hmac-arguments", "the HMAC's key and message were exchanged",
            mend: "libraries differ in which argument comes first: the secret is the key",
            .mac { spelling, secret in
                [OtherHash.sha256, .md5].map { hash in
                    OtherMAC(
                        name: "HMAC-\(hash.rawValue)", bytes: hash.hmac(key: spelling.text.bytes.span, secret.span))
                }
            }),
        Mistake(
            "digest-first", "the string to sign was hashed, and the hash signed",
            mend: "give the HMAC the string itself: it hashes for you",
            .mac { spelling, secret in
                [OtherHash.sha256, .sha1, .md5].flatMap { hash in
                    let digest = hash.digest(spelling.text.bytes.span)
                    return [digest, [UInt8](Hex.encode(digest.span)), [UInt8](Base64.encode(digest.span, .standard))]
                        .map {
                            OtherMAC(
                                name: "HMAC-SHA-256 of \(hash.rawValue)",
                                bytes: OtherHash.sha256.hmac(key: secret.span, $0.span))
                        }
                }
            }),
    ]
}
