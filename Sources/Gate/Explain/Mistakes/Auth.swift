import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// auth-v1, auth-v2 and auth-v4: each signs as another version of it does.
    static let auth = [
        Mistake(
            code: "old-string-to-sign", sentence: "the string to sign is that of another auth version",
            remedy: "spell the string to sign of the version that auth_version or X-Auth-Version names",
            schemes: [.authV1, .authV2, .authV4],
            scope: .digest,
            correction: .text { input in
                switch input.scheme {
                case .authV1: [version2(input)]
                case .authV2: version1(input)
                default: lines(input)
                }
            }),
        Mistake(
            code: "other-url",
            sentence:
                "the URL was signed without its scheme and host, without its query, or without its "
                + "default port",
            remedy: "sign the whole URL as the client requests it", schemes: [.authV4],
            correction: .text { input in
                let draft = input.draft
                let port = draft.transport == .tls ? ":443" : ":80"
                let lines = input.text.bytes.split(at: .newline)
                guard lines.count == 3 else { return [] }
                let url = lines[1].text
                let others = [
                    draft.path, draft.target, Array(lines[1].prefix { $0 != .question }),
                    [UInt8](url.replacing(draft.authority, with: draft.authority + port)),
                    [UInt8](draft.authority) + draft.target,
                    [UInt8](url.replacing(draft.authority, with: draft.authority.lowercased())),
                ]
                return others.map {
                    SigningString(bytes: Array([lines[0], $0, lines[2]].joined(separator: [.newline])))
                }
            }),
        Mistake(
            code: "values-not-encoded",
            sentence: "the values of the body were signed without percent-encoding",
            remedy: "percent-encode names and values before they are signed", schemes: [.authV4],
            correction: .text { input in
                let text = ParameterString(input)
                return [
                    { PercentEncodingVariants.decode($0) },
                    { PercentEncodingVariants.form(PercentEncodingVariants.decode($0)) },
                    PercentEncodingVariants.lowerCase,
                    { PercentEncodingVariants.component(PercentEncodingVariants.decode($0)) },
                ]
                .map { text.mapped(name: $0, value: $0) }
            }),
        Mistake(
            code: "digest-missing", sentence: "the digest of the body was signed and not sent",
            remedy: "send body_md5 where it is signed, with an empty body too", schemes: [.authV1],
            scope: .digest,
            correction: .request { draft in
                guard let query = draft.query, !draft.isForm else { return [] }
                var hash = MD5()
                hash.update(draft.body.span)
                let digest = Hex.encode(hash.finish().span)
                return query.contains([UInt8]("body_md5="))
                    ? [] : [draft.with(\.target, setTo: draft.target + [UInt8]("&body_md5=\(digest)"))]
            }),
    ]

    /// All parameters but the signature, in lower case: as auth-v1 does it.
    private static func version1(_ input: SigningInput) -> [SigningString] {
        let all = sent(input).filter { $0.name != [UInt8]("auth_signature") }
        let lower = all.map { (name: $0.name.map(ASCII.lowercased), value: $0.value) }
        let timed = all.filter {
            !$0.name.starts(with: [UInt8]("auth_")) || $0.name == [UInt8]("auth_timestamp")
        }
        return [lower, all, timed].map { text(of: input, path: input.draft.path, parameters: $0) }
    }

    /// No parameter in `auth_`, and the path decoded: as auth-v2 does it.
    private static func version2(_ input: SigningInput) -> SigningString {
        let others = sent(input).filter { !$0.name.starts(with: [UInt8]("auth_")) }
        return text(
            of: input, path: PercentEncodingVariants.decode(input.draft.path), parameters: others)
    }

    /// auth-v4 with the body itself, its members unsorted, or the time added.
    private static func lines(_ input: SigningInput) -> [SigningString] {
        let lines = input.text.bytes.split(at: .newline)
        guard lines.count == 3 else { return [] }
        let time = input.draft.value(of: "x-auth-timestamp") ?? []
        return [
            [lines[0], lines[1], input.draft.body], [lines[0], input.draft.path, input.draft.body],
            [lines[0], lines[1], time, lines[2]], [lines[0], lines[1], lines[2], time],
            [lines[0], input.draft.path, lines[2]],
        ].map { SigningString(bytes: Array($0.joined(separator: [.newline]))) }
    }

    private static func sent(_ input: SigningInput) -> [(name: [UInt8], value: [UInt8])] {
        let draft = input.draft
        return QueryPairs(draft.isForm && !draft.body.isEmpty ? draft.body : draft.query ?? []).all.map {
            pair in
            (
                PercentEncodingVariants.decode(pair.name, plus: .space),
                PercentEncodingVariants.decode(pair.value ?? [], plus: .space)
            )
        }
    }

    private static func text(
        of input: SigningInput, path: [UInt8], parameters: [(name: [UInt8], value: [UInt8])]
    ) -> SigningString {
        let sorted = parameters.sorted { $0.name.lexicographicallyPrecedes($1.name) }
        let joined = Array(sorted.map { $0.name + [.equals] + $0.value }.joined(separator: [.ampersand]))
        return SigningString(bytes: [UInt8](input.draft.method) + [.newline] + path + [.newline] + joined)
    }
}
