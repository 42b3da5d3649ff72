import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// What keeps a signature from being read at all. The mended request is read in place of the one that
    /// came, and the signature must hold for it, as mended or as the caller wrote it.
    static let repairs = [
        Mistake(
            code: "key-id-white-space", sentence: "the key id was sent with white space",
            remedy: "send the id as it was printed",
            correction: .repair { draft, scheme in
                guard let place = CredentialLocation.keyID(of: scheme, in: draft),
                    let sent = place.read(draft),
                    sent != sent.trimmed
                else { return [] }
                let mended = place.write(sent.trimmed, in: draft)
                // In a field on the way (Countersign-Release) the white space is lost, and only the signer
                // knew of it.
                return [
                    Repair(draft: mended, written: place.mark + sent.trimmed, original: place.mark + sent),
                    Repair(draft: mended, written: sent.trimmed, original: sent),
                ]
            }),
        Mistake(
            code: "empty-digest-missing", sentence: "the digest of the empty body was signed and not sent",
            remedy: "send Content-Digest with an empty body too, or do not cover it",
            schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                draft.body.isEmpty && missing(in: draft).contains("content-digest") ? withDigests(draft) : []
            }),
        Mistake(
            code: "header-dropped", sentence: "a signed field did not arrive",
            remedy: "sign what is sent, and leave out fields that proxies remove",
            schemes: [.messageSignatures],
            scope: .digest,
            correction: .repair { draft, _ in
                guard let name = missing(in: draft).first else { return [] }
                let values: [String]
                switch name {
                case "content-digest": return draft.body.isEmpty ? [] : withDigests(draft)
                case "content-length": values = [String(draft.body.count)]
                case "content-type":
                    values = [
                        "application/json", "application/json; charset=utf-8", "application/octet-stream", "",
                    ]
                case "accept": values = ["*/*", "application/json"]
                case "accept-encoding": values = ["gzip, deflate", "gzip", "gzip, deflate, br", "identity"]
                case "connection": values = ["keep-alive", "close"]
                default: values = [""]
                }
                return values.map { adding(field: name, value: $0, to: draft) }
            }),
        Mistake(
            code: "digest-encoding",
            sentence: "the digest was sent in another encoding than Base64 between colons",
            remedy: "write sha-256=:…: with the Base64 of the 32 bytes", schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                guard let sent = draft.value(of: "content-digest"), let mark = sent.firstIndex(of: .equals)
                else {
                    return []
                }
                let text = sent[(mark + 1)...].filter { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "\"") }
                let standard = text.text.replacing("-", with: "+").replacing("_", with: "/").filter {
                    $0 != "="
                }
                let base64 = Base64.decode(
                    standard + String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4), as: .standard
                )
                let readings = [
                    Hex.decode(text.text.lowercased()), base64,
                    base64.flatMap { Hex.decode($0.text.lowercased()) },
                ]
                return readings.compactMap { $0 }.filter { $0.count == 32 || $0.count == 64 }.map { digest in
                    let written = [UInt8](
                        "sha-\(digest.count * 8)=:\(Base64.encode(digest.span, as: .standard)):")
                    var mended = draft
                    mended.setField("Content-Digest", to: written.text)
                    return Repair(draft: mended, written: written, original: sent)
                }
            }),
        Mistake(
            code: "alg-parameter", sentence: "the alg parameter names another algorithm than the key is for",
            remedy: "leave alg away, or write the key's own", schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                replacing(draft, after: ";alg=", with: "\"hmac-sha256\"")
            }),
        Mistake(
            code: "created-not-integer", sentence: "created was not written as a whole number",
            remedy: "write created as whole Unix seconds, without quotes or a fraction",
            schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                guard let input = draft.value(of: "signature-input"),
                    let start = input.firstRange(of: [UInt8](";created="))
                else {
                    return []
                }
                let digits = input[start.upperBound...].drop { $0 == UInt8(ascii: "\"") }.prefix(
                    while: ASCII.isDigit)
                return replacing(draft, after: ";created=", with: Array(digits).text)
            }),
        Mistake(
            code: "header-name-case", sentence: "Signature-Input names fields with capitals",
            remedy: "names of fields are written in lower case (RFC 9421 §2.1)",
            schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                guard let input = draft.value(of: "signature-input"),
                    let end = input.firstIndex(of: UInt8(ascii: ")"))
                else {
                    return []
                }
                let list = Array(input[..<end])
                let lower = list.map(ASCII.lowercased)
                guard lower != list else { return [] }
                var mended = draft
                mended.setField("Signature-Input", to: (lower + input[end...]).text)
                let start = list.firstIndex(of: UInt8(ascii: "(")) ?? 0
                return [
                    Repair(draft: mended, written: Array(lower[start...]), original: Array(list[start...]))
                ]
            }),
        Mistake(
            code: "signature-input-spacing",
            sentence: "Signature-Input has spaces that its canonical form does not have",
            remedy: "write one space between components and none elsewhere (RFC 8941 §4.1)",
            schemes: [.messageSignatures],
            correction: .repair { draft, _ in
                guard let input = draft.value(of: "signature-input") else { return [] }
                let canonical = input.replacing([UInt8]("; "), with: [UInt8](";")).replacing(
                    [UInt8](" ;"), with: [UInt8](";")
                )
                .replacing([UInt8]("  "), with: [.space]).replacing([UInt8]("( "), with: [UInt8]("("))
                .replacing([UInt8](" )"), with: [UInt8](")"))
                guard canonical != input, let mark = input.firstIndex(of: UInt8(ascii: "(")),
                    let start = canonical.firstIndex(of: UInt8(ascii: "("))
                else { return [] }
                var mended = draft
                mended.setField("Signature-Input", to: canonical.text)
                return [
                    Repair(
                        draft: mended, written: Array(canonical[start...]), original: Array(input[mark...]))
                ]
            }),
        Mistake(
            code: "timestamp-format", sentence: "the timestamp was written in another form",
            remedy: "write it as yyyy-MM-dd-HH:mm:ss", schemes: [.formMD5],
            scope: .parameters,
            correction: .repair { draft, _ in
                draft.withParameters { text in
                    var pairs = QueryPairs(text)
                    for index in pairs.all.indices where pairs.all[index].name == [UInt8]("timestamp") {
                        var time = PercentEncodingVariants.decode(pairs.all[index].value ?? [], plus: .space)
                        guard time.count >= 19, time[10] == .space || time[10] == UInt8(ascii: "T") else {
                            continue
                        }
                        time[10] = UInt8(ascii: "-")
                        pairs.all[index].value = PercentEncodingVariants.strict(Array(time[..<19]))
                    }
                    return [pairs.text]
                }.flatMap { mended -> [Repair] in
                    guard let sent = timestamp(draft), let written = timestamp(mended) else { return [] }
                    return [Repair(draft: mended, written: written, original: sent)]
                }
            }),
        Mistake(
            code: "body-compressed", sentence: "the body was compressed after it was signed",
            remedy: "compress first and sign what is sent, or turn compression off in the HTTP library",
            schemes: [.formMD5, .authV4],
            scope: .compressed,
            correction: .repair { draft, _ in
                Inflate.bodies(of: draft).map { body in
                    var plain = draft.with(\.body, setTo: body)
                    plain.fields.removeAll { $0.name.lowercased() == "content-encoding" }
                    return Repair(draft: plain, written: [], original: [])
                }
            }),
    ]

    /// Names that Signature-Input lists and the request does not have.
    private static func missing(in draft: Draft) -> [String] {
        guard let input = draft.value(of: "signature-input")?.text,
            let list = input.split(separator: ")").first
        else {
            return []
        }
        let there = Set(
            draft.fields.map { $0.name.lowercased() } + ["host"]
                + (draft.body.isEmpty ? [] : ["content-length"]))
        return list.split(separator: "\"").map(String.init).filter {
            $0.first?.isLetter == true && $0.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" }
                && !there.contains($0)
        }
    }

    private static func withDigests(_ draft: Draft) -> [Repair] {
        let short = SHA256.digest(draft.body.span)
        let long = SHA512.digest(draft.body.span)
        return [
            "sha-256=:\(Base64.encode(short.span, as: .standard)):",
            "sha-512=:\(Base64.encode(long.span, as: .standard)):",
        ].map { adding(field: "content-digest", value: $0, to: draft) }
    }

    private static func adding(field name: String, value: String, to draft: Draft) -> Repair {
        var mended = draft
        mended.fields.append(Draft.Field(name: name, value: value))
        return Repair(draft: mended, written: [], original: [])
    }

    /// A parameter's value in Signature-Input.
    private static func replacing(_ draft: Draft, after mark: String, with value: String) -> [Repair] {
        guard let input = draft.value(of: "signature-input"), let start = input.firstRange(of: [UInt8](mark))
        else {
            return []
        }
        let end =
            input[start.upperBound...].firstIndex { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
            ?? input.endIndex
        let original = Array(input[start.lowerBound..<end])
        let written = [UInt8](mark + value)
        guard written != original else { return [] }
        var mended = draft
        mended.setField("Signature-Input", to: (input[..<start.lowerBound] + written + input[end...]).text)
        return [Repair(draft: mended, written: written, original: original)]
    }

    private static func timestamp(_ draft: Draft) -> [UInt8]? {
        let text = draft.isForm ? draft.body : draft.query ?? []
        return QueryPairs(text).all.first { $0.name == [UInt8]("timestamp") }?.value.map {
            PercentEncodingVariants.decode($0, plus: .space)
        }
    }
}

extension Array<UInt8>.SubSequence {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
