import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// sigv4's own: the canonical request, whose hash is signed, and the key that is derived from the secret.
    static let sigV4 = [
        Mistake(
            "path-encoded-once", "the path was put into the canonical request as it was sent, or encoded otherwise",
            mend: "outside of S3 each segment is percent-encoded once more, after it was encoded for sending",
            of: [.sigV4],
            .text { spelling in
                spelling.canonical { lines in
                    let path = spelling.draft.path
                    let segments = path.split(at: .slash)
                    lines[1] = path
                    let once = lines
                    lines[1] = Array(segments.map { Escapes.strict(Escapes.decode($0)) }.joined(separator: [.slash]))
                    let anew = lines
                    lines[1] = Array(segments.map(Escapes.strict).joined(separator: [.slash]))
                    return [once, anew, lines]
                }
            }),
        Mistake(
            "header-name-case", "names of fields were put into the canonical request with capitals",
            mend: "write the names of fields in lower case, in CanonicalHeaders and in SignedHeaders", of: [.sigV4],
            .text { spelling in
                spelling.canonical { lines in
                    for index in lines.indices.dropFirst(3).dropLast(3) { lines[index] = capitals(lines[index]) }
                    return [lines]
                }
            }),
        Mistake(
            "empty-digest-missing", "the hash of the empty body was left out of the canonical request",
            mend: "the last line is the SHA-256 of nothing (e3b0c442…) where there is no body", of: [.sigV4],
            .text { spelling in
                guard spelling.draft.body.isEmpty else { return [] }
                return spelling.canonical { lines in [lines.dropLast() + [[]], Array(lines.dropLast())] }
            }),
        Mistake(
            "payload-hash", "another hash of the body was put into the canonical request than was sent",
            mend:
                "the last line is the SHA-256 of the body in lower-case hexadecimal digits, as in X-Amz-Content-Sha256",
            of: [.sigV4],
            .text { spelling in
                let digest = SHA256.digest(spelling.draft.body.span)
                let empty = SHA256.digest([UInt8]().span)
                let last = [
                    "UNSIGNED-PAYLOAD", Hex.encode(empty.span), Hex.encode(digest.span),
                    Hex.encode(digest.span).uppercased(), Base64.encode(digest.span, .standard),
                    spelling.draft.body.text,
                ]
                return spelling.canonical { lines in
                    last.map { lines.dropLast() + [[UInt8]($0)] }
                }
            }),
        Mistake(
            "canonical-lines", "a line of the canonical request is missing or one too many",
            mend: "an empty line follows the last field, even where there is no query; none follows the hash",
            of: [.sigV4],
            .text { spelling in
                spelling.canonical { lines in
                    let blank = lines.count - 3
                    return [
                        Array(lines[..<blank] + lines[(blank + 1)...]), lines + [[]],
                        lines[..<2] + lines[3...].map { $0 },
                    ]
                }
            }),
        Mistake(
            "canonical-not-hashed", "the canonical request was signed itself, not its hash",
            mend: "the last line of the string to sign is the SHA-256 of the canonical request", of: [.sigV4],
            .text { spelling in
                let start = spelling.text.bytes.lastIndex(of: .newline).map { $0 + 1 } ?? 0
                return [Text(bytes: spelling.text.bytes[..<start] + spelling.canonicalRequest)]
            }),
        Mistake(
            "old-string-to-sign", "the string to sign is that of Signature Version 2",
            mend: "spell it as Signature Version 4 does: algorithm, time, scope, hash of the canonical request",
            of: [.sigV4],
            .mac { spelling, secret in
                let draft = spelling.draft
                let query = Pairs(draft.query ?? []).orders.first ?? []
                let lines = [[UInt8](draft.method), [UInt8](draft.authority.lowercased()), draft.path, query]
                let text = Array(lines.joined(separator: [.newline]))
                return [OtherMAC(name: "Version 2", bytes: OtherHash.sha256.hmac(key: secret.span, text.span))]
            }),
        Mistake(
            "key-derivation", "the key was derived otherwise",
            mend: "HMAC in turn \"AWS4\" and the secret over the date, then the region, the service and aws4_request",
            of: [.sigV4],
            .mac { spelling, secret in
                let text = spelling.text
                let lines = text.bytes.split(at: .newline)
                guard lines.count == 4 else { return [] }
                let scope = lines[2].split(at: .slash)
                func mac(_ key: [UInt8], _ words: some Sequence<[UInt8]>) -> [UInt8] {
                    let derived = words.reduce(key) { OtherHash.sha256.hmac(key: $0.span, $1.span) }
                    return OtherHash.sha256.hmac(key: derived.span, text.bytes.span)
                }
                let prefixed = [UInt8]("AWS4") + secret
                return [
                    OtherMAC(name: "not at all", bytes: mac(secret, [])),
                    OtherMAC(name: "not at all", bytes: mac(prefixed, [])),
                    OtherMAC(name: "without AWS4 before the secret", bytes: mac(secret, scope)),
                    OtherMAC(name: "without aws4_request", bytes: mac(prefixed, scope.dropLast())),
                    OtherMAC(name: "in the reverse order", bytes: mac(prefixed, scope.reversed())),
                    OtherMAC(
                        name: "with the whole time for the date", bytes: mac(prefixed, [lines[1]] + scope.dropFirst())),
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

extension Spelling {
    /// The strings to sign of other canonical requests, by their lines.
    fileprivate func canonical(_ change: (inout [[UInt8]]) -> [[[UInt8]]]) -> [Text] {
        var lines = canonicalRequest.split(at: .newline)
        guard lines.count >= 6, let start = text.bytes.lastIndex(of: .newline) else { return [] }
        return change(&lines).map { lines in
            let digest = SHA256.digest(Array(lines.joined(separator: [.newline])).span)
            return Text(bytes: text.bytes[...start] + [UInt8](Hex.encode(digest.span)))
        }
    }
}
