import CountersignWire

extension Mistake {
    /// Another spelling of the right secret. Another secret altogether cannot be told from a forgery: that is said only
    /// where the other one is known.
    static let keys = [
        Mistake(
            "secret-white-space",
            "the secret was used with white space at an end, or without the white space that it has",
            mend: "cut the end of line off where the secret is read from a file or the environment",
            .secret { secret in
                [secret.trimmed] + ["\n", "\r\n", " "].map { secret + [UInt8]($0) } + [[.space] + secret]
            }),
        Mistake(
            "secret-encoding", "the secret was used as its text where its bytes were meant, or the reverse",
            mend: "base64url and hexadecimal are spellings of bytes: decode them, and do not decode a plain text",
            .secret { encodings(of: $0) + decodings(of: $0) }),
        Mistake(
            "secret-quoted", "the secret was used with the quotes around it", mend: "take the quotes away",
            .secret { secret in
                var found = ["\"", "'"].map { [UInt8]($0) + secret + [UInt8]($0) }
                if secret.count > 2, let first = secret.first, first == secret.last, "\"'".utf8.contains(first) {
                    found.append(Array(secret.dropFirst().dropLast()))
                }
                return found
            }),
        Mistake(
            "secret-case", "the secret was used in another case", mend: "secrets have case: use it as it was printed",
            .secret { secret in [secret.map(ASCII.lowercased), [UInt8](secret.text.uppercased())] }),
        Mistake(
            "secret-prefixed", "the secret was used with the prefix that says how it is written",
            mend: "text:, hex: and base64url: are not part of the secret",
            .secret { secret in
                let (digits, letters) = (Hex.encode(secret.span), Base64.encode(secret.span, .url))
                return [
                    [UInt8]("text:") + secret, [UInt8]("hex:\(digits)"), [UInt8]("base64url:\(letters)"),
                    [UInt8]("AWS4") + secret,
                ]
            }),
    ]

    private static func encodings(of secret: [UInt8]) -> [[UInt8]] {
        let digits = Hex.encode(secret.span)
        let url = Base64.encode(secret.span, .url)
        let standard = Base64.encode(secret.span, .standard)
        return [url, standard, digits, digits.uppercased()].map { [UInt8]($0) }
    }

    private static func decodings(of secret: [UInt8]) -> [[UInt8]] {
        var found: [[UInt8]] = []
        if let bytes = Base64.decode(secret.span, .url) { found.append(bytes) }
        if let bytes = Base64.decode(secret.span, .standard) { found.append(bytes) }
        if let bytes = Hex.decode(secret.text.lowercased()) { found.append(bytes) }
        // Printed in base64url and read by one of the Base64 decoders that skip letters they do not know.
        let known = Base64.encode(secret.span, .url).filter { $0 != "-" && $0 != "_" }
        if let bytes = Base64.decode(known, .url), bytes != secret { found.append(bytes) }
        return found
    }
}
