import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// Another form of the right secret. Another secret altogether cannot be told from a forgery: that is
    /// said only where the other one is known.
    static let keys = [
        Mistake(
            code: "secret-white-space",
            sentence:
                "the secret was used with white space at an end, or without the white space that it has",
            remedy: "cut the end of line off where the secret is read from a file or the environment",
            correction: .secret { secret in
                [secret.trimmed] + ["\n", "\r\n", " "].map { secret + [UInt8]($0) } + [[.space] + secret]
            }),
        Mistake(
            code: "secret-encoding",
            sentence: "the secret was used as its text where its bytes were meant, or the reverse",
            remedy:
                "base64url and hexadecimal are spellings of bytes: decode them, and do not decode a "
                + "plain text",
            correction: .secret { encodings(of: $0) + decodings(of: $0) }),
        Mistake(
            code: "secret-quoted", sentence: "the secret was used with the quotes around it",
            remedy: "take the quotes away",
            correction: .secret { secret in
                var found = ["\"", "'"].map { [UInt8]($0) + secret + [UInt8]($0) }
                if secret.count > 2, let first = secret.first, first == secret.last,
                    "\"'".utf8.contains(first)
                {
                    found.append(Array(secret.dropFirst().dropLast()))
                }
                return found
            }),
        Mistake(
            code: "secret-case", sentence: "the secret was used in another case",
            remedy: "secrets have case: use it as it was printed",
            correction: .secret { secret in [secret.map(ASCII.lowercased), [UInt8](secret.text.uppercased())]
            }),
        Mistake(
            code: "secret-prefixed",
            sentence: "the secret was used with the prefix that says how it is written",
            remedy: "text:, hex: and base64url: are not part of the secret",
            correction: .secret { secret in
                let (digits, letters) = (Hex.encode(secret.span), Base64.encode(secret.span, as: .url))
                return [
                    [UInt8]("text:") + secret, [UInt8]("hex:\(digits)"), [UInt8]("base64url:\(letters)"),
                    [UInt8]("AWS4") + secret,
                ]
            }),
    ]

    private static func encodings(of secret: [UInt8]) -> [[UInt8]] {
        let digits = Hex.encode(secret.span)
        let url = Base64.encode(secret.span, as: .url)
        let standard = Base64.encode(secret.span, as: .standard)
        return [url, standard, digits, digits.uppercased()].map { [UInt8]($0) }
    }

    private static func decodings(of secret: [UInt8]) -> [[UInt8]] {
        var found: [[UInt8]] = []
        if let bytes = Base64.decode(secret.span, as: .url) { found.append(bytes) }
        if let bytes = Base64.decode(secret.span, as: .standard) { found.append(bytes) }
        if let bytes = Hex.decode(secret.text.lowercased()) { found.append(bytes) }
        // Printed in base64url and read by one of the Base64 decoders that skip letters they do not know.
        let known = Base64.encode(secret.span, as: .url).filter { $0 != "-" && $0 != "_" }
        if let bytes = Base64.decode(known, as: .url), bytes != secret { found.append(bytes) }
        return found
    }
}

extension Mistake {
    /// The right text and the right secret, put together otherwise.
    static let algorithms = [
        Mistake(
            code: "wrong-algorithm", sentence: "the string to sign was signed with another algorithm",
            remedy: "use the algorithm of the scheme and the key: HMAC-SHA256, for form-md5 plain MD5",
            correction: .mac { input, secret in
                let text = input.text
                let message = Array(text.bytes[..<text.secretAt]) + Array(text.bytes[text.secretAt...])
                let whole =
                    Array(text.bytes[..<text.secretAt]) + (text.secretAt > 0 ? secret : [])
                    + text.bytes[text.secretAt...]
                return DiagnosticHash.allCases.flatMap { hash in
                    let keyed = [message, whole].map { hash.hmac(key: secret.span, message: $0.span) }
                    var plain = [
                        (secret + message, ", the secret first"), (message + secret, ", the secret last"),
                    ]
                    // A hash without the secret proves nothing: any party can compute it.
                    if text.secretAt > 0 { plain.append((whole, "")) }
                    return keyed.map { AlternativeMAC(name: "HMAC-\(hash.rawValue)", bytes: $0) }
                        + plain.map {
                            AlternativeMAC(
                                name: "plain \(hash.rawValue)\($0.1)", bytes: hash.digest($0.0.span))
                        }
                }
            }),
        Mistake(
            code: "hmac-arguments", sentence: "the HMAC's key and message were exchanged",
            remedy: "libraries differ in which argument comes first: the secret is the key",
            correction: .mac { input, secret in
                [DiagnosticHash.sha256, .md5].map { hash in
                    AlternativeMAC(
                        name: "HMAC-\(hash.rawValue)",
                        bytes: hash.hmac(key: input.text.bytes.span, message: secret.span))
                }
            }),
        Mistake(
            code: "digest-first", sentence: "the string to sign was hashed, and the hash signed",
            remedy: "give the HMAC the string itself: it hashes for you",
            correction: .mac { input, secret in
                [DiagnosticHash.sha256, .sha1, .md5].flatMap { hash in
                    let digest = hash.digest(input.text.bytes.span)
                    return [
                        digest, [UInt8](Hex.encode(digest.span)),
                        [UInt8](Base64.encode(digest.span, as: .standard)),
                    ]
                    .map {
                        AlternativeMAC(
                            name: "HMAC-SHA-256 of \(hash.rawValue)",
                            bytes: DiagnosticHash.sha256.hmac(key: secret.span, message: $0.span))
                    }
                }
            }),
    ]
}
