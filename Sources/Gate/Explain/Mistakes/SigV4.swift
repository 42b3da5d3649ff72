import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// sigv4's own: the canonical request, whose hash is signed, and the key that is derived from the secret.
    static let sigV4 = [
        Mistake(
            code: "path-encoded-once",
            sentence: "the path was put into the canonical request as it was sent, or encoded otherwise",
            remedy:
                "outside of S3 each segment is percent-encoded once more, after it was encoded for sending",
            schemes: [.sigV4],
            correction: .text { input in
                input.canonical { lines in
                    let path = input.draft.path
                    let segments = path.split(at: .slash)
                    lines[1] = path
                    let once = lines
                    lines[1] = Array(
                        segments.map { PercentEncodingVariants.strict(PercentEncodingVariants.decode($0)) }
                            .joined(separator: [.slash]))
                    let anew = lines
                    lines[1] = Array(segments.map(PercentEncodingVariants.strict).joined(separator: [.slash]))
                    return [once, anew, lines]
                }
            }),
        Mistake(
            code: "header-name-case",
            sentence: "names of fields were put into the canonical request with capitals",
            remedy: "write the names of fields in lower case, in CanonicalHeaders and in SignedHeaders",
            schemes: [.sigV4],
            correction: .text { input in
                input.canonical { lines in
                    for index in lines.indices.dropFirst(3).dropLast(3) {
                        lines[index] = capitals(lines[index])
                    }
                    return [lines]
                }
            }),
        Mistake(
            code: "empty-digest-missing",
            sentence: "the hash of the empty body was left out of the canonical request",
            remedy: "the last line is the SHA-256 of nothing (e3b0c442…) where there is no body",
            schemes: [.sigV4],
            correction: .text { input in
                guard input.draft.body.isEmpty else { return [] }
                return input.canonical { lines in [lines.dropLast() + [[]], Array(lines.dropLast())] }
            }),
        Mistake(
            code: "payload-hash",
            sentence: "another hash of the body was put into the canonical request than was sent",
            remedy:
                "the last line is the SHA-256 of the body in lower-case hexadecimal digits, as in "
                + "X-Amz-Content-Sha256",
            schemes: [.sigV4],
            scope: .digest,
            correction: .text { input in
                let digest = SHA256.digest(input.draft.body.span)
                let empty = SHA256.digest([UInt8]().span)
                let last = [
                    "UNSIGNED-PAYLOAD", Hex.encode(empty.span), Hex.encode(digest.span),
                    Hex.encode(digest.span).uppercased(), Base64.encode(digest.span, as: .standard),
                    input.draft.body.text,
                ]
                return input.canonical { lines in
                    last.map { lines.dropLast() + [[UInt8]($0)] }
                }
            }),
        Mistake(
            code: "canonical-lines", sentence: "a line of the canonical request is missing or one too many",
            remedy:
                "an empty line follows the last field, even where there is no query; none follows the hash",
            schemes: [.sigV4],
            correction: .text { input in
                input.canonical { lines in
                    let blank = lines.count - 3
                    return [
                        Array(lines[..<blank] + lines[(blank + 1)...]), lines + [[]],
                        lines[..<2] + lines[3...].map { $0 },
                    ]
                }
            }),
        Mistake(
            code: "canonical-not-hashed", sentence: "the canonical request was signed itself, not its hash",
            remedy: "the last line of the string to sign is the SHA-256 of the canonical request",
            schemes: [.sigV4],
            correction: .text { input in
                let start = input.text.bytes.lastIndex(of: .newline).map { $0 + 1 } ?? 0
                return [SigningString(bytes: input.text.bytes[..<start] + input.canonicalRequest)]
            }),
        Mistake(
            code: "old-string-to-sign", sentence: "the string to sign is that of Signature Version 2",
            remedy:
                "spell it as Signature Version 4 does: algorithm, time, scope, hash of the canonical request",
            schemes: [.sigV4],
            correction: .mac { input, secret in
                let draft = input.draft
                let query = QueryPairs(draft.query ?? []).orders.first ?? []
                let lines = [[UInt8](draft.method), [UInt8](draft.authority.lowercased()), draft.path, query]
                let text = Array(lines.joined(separator: [.newline]))
                return [
                    AlternativeMAC(
                        name: "Version 2",
                        bytes: DiagnosticHash.sha256.hmac(key: secret.span, message: text.span))
                ]
            }),
        Mistake(
            code: "key-derivation", sentence: "the key was derived otherwise",
            remedy:
                "HMAC in turn \"AWS4\" and the secret over the date, then the region, the service "
                + "and aws4_request",
            schemes: [.sigV4],
            correction: .mac { input, secret in
                let text = input.text
                let lines = text.bytes.split(at: .newline)
                guard lines.count == 4 else { return [] }
                let scope = lines[2].split(at: .slash)
                func mac(under key: [UInt8], words: some Sequence<[UInt8]>) -> [UInt8] {
                    let derived = words.reduce(key) {
                        DiagnosticHash.sha256.hmac(key: $0.span, message: $1.span)
                    }
                    return DiagnosticHash.sha256.hmac(key: derived.span, message: text.bytes.span)
                }
                let prefixed = [UInt8]("AWS4") + secret
                return [
                    AlternativeMAC(name: "not at all", bytes: mac(under: secret, words: [])),
                    AlternativeMAC(name: "not at all", bytes: mac(under: prefixed, words: [])),
                    AlternativeMAC(
                        name: "without AWS4 before the secret", bytes: mac(under: secret, words: scope)),
                    AlternativeMAC(
                        name: "without aws4_request", bytes: mac(under: prefixed, words: scope.dropLast())),
                    AlternativeMAC(
                        name: "in the reverse order", bytes: mac(under: prefixed, words: scope.reversed())),
                    AlternativeMAC(
                        name: "with the whole time for the date",
                        bytes: mac(under: prefixed, words: [lines[1]] + scope.dropFirst())),
                ]
            }),
    ]

    /// `content-type:…` as `Content-Type:…`.
    private static func capitals(_ line: [UInt8]) -> [UInt8] {
        var line = line
        var isStart = true
        for index in line.indices {
            if line[index] == UInt8(ascii: ":") { break }
            if isStart, ASCII.isLetter(line[index]) { line[index] &= 0xDF }
            isStart = line[index] == UInt8(ascii: "-")
        }
        return line
    }
}

extension SigningInput {
    /// The strings to sign of other canonical requests, by their lines.
    fileprivate func canonical(_ change: (inout [[UInt8]]) -> [[[UInt8]]]) -> [SigningString] {
        var lines = canonicalRequest.split(at: .newline)
        guard lines.count >= 6, let start = text.bytes.lastIndex(of: .newline) else { return [] }
        return change(&lines).map { lines in
            let digest = SHA256.digest(Array(lines.joined(separator: [.newline])).span)
            return SigningString(bytes: text.bytes[...start] + [UInt8](Hex.encode(digest.span)))
        }
    }
}
