import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// The right text and the right secret, put together otherwise.
    static let algorithms = [
        Mistake(
            "wrong-algorithm", "the string to sign was signed with another algorithm",
            mend: "use the algorithm of the scheme and the key: HMAC-SHA256, for form-md5 plain MD5",
            .mac { text, secret in
                let message = Array(text.bytes[..<text.secretAt]) + Array(text.bytes[text.secretAt...])
                let whole =
                    Array(text.bytes[..<text.secretAt]) + (text.secretAt > 0 ? secret : [])
                    + text.bytes[text.secretAt...]
                return OtherHash.allCases.flatMap { hash in
                    [
                        OtherMAC(name: "HMAC-\(hash.rawValue)", bytes: hash.hmac(key: secret.span, message.span)),
                        OtherMAC(name: "HMAC-\(hash.rawValue)", bytes: hash.hmac(key: secret.span, whole.span)),
                        OtherMAC(
                            name: "plain \(hash.rawValue), the secret first",
                            bytes: hash.digest((secret + message).span)),
                        OtherMAC(
                            name: "plain \(hash.rawValue), the secret last", bytes: hash.digest((message + secret).span)
                        ),
                        OtherMAC(name: "plain \(hash.rawValue)", bytes: hash.digest(whole.span)),
                    ]
                }
            }),
        Mistake(
            "hmac-arguments", "the HMAC's key and message were exchanged",
            mend: "libraries differ in which argument comes first: the secret is the key",
            .mac { text, secret in
                [OtherHash.sha256, .md5].map { hash in
                    OtherMAC(name: "HMAC-\(hash.rawValue)", bytes: hash.hmac(key: text.bytes.span, secret.span))
                }
            }),
        Mistake(
            "digest-first", "the string to sign was hashed, and the hash signed",
            mend: "give the HMAC the string itself: it hashes for you",
            .mac { text, secret in
                [OtherHash.sha256, .sha1, .md5].flatMap { hash in
                    let digest = hash.digest(text.bytes.span)
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
