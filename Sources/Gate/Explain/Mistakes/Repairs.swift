import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Mistake {
    /// What keeps a signature from being read at all. The mended request is read in place of the one that came, and the
    /// signature must hold for it, as mended or as the caller wrote it.
    static let repairs = [
        Mistake(
            "key-id-white-space", "the key id was sent with white space", mend: "send the id as it was printed",
            .repair { draft, scheme in
                guard let place = SentPlace.keyID(of: scheme, in: draft), let sent = place.read(draft),
                    sent != sent.trimmed
                else { return [] }
                return [
                    Repair(
                        draft: place.write(sent.trimmed, in: draft), written: place.mark + sent.trimmed,
                        original: place.mark + sent)
                ]
            }),
        Mistake(
            "empty-digest-missing", "the digest of the empty body was signed and not sent",
            mend: "send Content-Digest with an empty body too, or do not cover it", of: [.messageSignatures],
            .repair { draft, _ in
                draft.body.isEmpty && missing(in: draft).contains("content-digest") ? withDigests(draft) : []
            }),
        Mistake(
            "header-dropped", "a signed field did not arrive",
            mend: "sign what is sent, and leave out fields that proxies remove", of: [.messageSignatures],
            .repair { draft, _ in
                guard let name = missing(in: draft).first else { return [] }
                let values: [String]
                switch name {
                case "content-digest": return draft.body.isEmpty ? [] : withDigests(draft)
                case "content-length": values = [String(draft.body.count)]
                case "content-type":
                    values = ["application/json", "application/json; charset=utf-8", "application/octet-stream", ""]
                case "accept": values = ["*/*", "application/json"]
                case "accept-encoding": values = ["gzip, deflate", "gzip", "gzip, deflate, br", "identity"]
                case "connection": values = ["keep-alive", "close"]
                default: values = [""]
                }
                return values.map { adding(name, $0, to: draft) }
            }),
        Mistake(
            "digest-encoding", "the digest was sent in another encoding than Base64 between colons",
            mend: "write sha-256=:…: with the Base64 of the 32 bytes", of: [.messageSignatures],
            .repair { draft, _ in
                guard let sent = draft.value(of: "content-digest"), let mark = sent.firstIndex(of: .equals) else {
                    return []
                }
                let text = sent[(mark + 1)...].filter { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "\"") }
                let standard = text.text.replacing("-", with: "+").replacing("_", with: "/").filter { $0 != "=" }
                let base64 = Base64.decode(
                    standard + String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4), .standard)
                let readings = [
                    Hex.decode(text.text.lowercased()), base64, base64.flatMap { Hex.decode($0.text.lowercased()) },
                ]
                return readings.compactMap { $0 }.filter { $0.count == 32 || $0.count == 64 }.map { digest in
                    let written = [UInt8]("sha-\(digest.count * 8)=:\(Base64.encode(digest.span, .standard)):")
                    var mended = draft
                    mended.set("Content-Digest", written.text)
                    return Repair(draft: mended, written: written, original: sent)
                }
            }),
        Mistake(
            "alg-parameter", "the alg parameter names another algorithm than the key is for",
            mend: "leave alg away, or write the key's own", of: [.messageSignatures],
            .repair { draft, _ in
                replacing(draft, after: ";alg=", with: "\"hmac-sha256\"")
            }),
        Mistake(
            "created-not-integer", "created was not written as a whole number",
            mend: "write created as whole Unix seconds, without quotes or a fraction", of: [.messageSignatures],
            .repair { draft, _ in
                guard let input = draft.value(of: "signature-input"),
                    let start = input.firstRange(of: [UInt8](";created="))
                else {
                    return []
                }
                let digits = input[start.upperBound...].drop { $0 == UInt8(ascii: "\"") }.prefix(while: ASCII.isDigit)
                return replacing(draft, after: ";created=", with: Array(digits).text)
            }),
        Mistake(
            "header-name-case", "Signature-Input names fields with capitals",
            mend: "names of fields are written in lower case (RFC 9421 §2.1)", of: [.messageSignatures],
            .repair { draft, _ in
                guard let input = draft.value(of: "signature-input"), let end = input.firstIndex(of: UInt8(ascii: ")"))
                else {
                    return []
                }
                let list = Array(input[..<end])
                let lower = list.map(ASCII.lowercased)
                guard lower != list else { return [] }
                var mended = draft
                mended.set("Signature-Input", (lower + input[end...]).text)
                let start = list.firstIndex(of: UInt8(ascii: "(")) ?? 0
                return [Repair(draft: mended, written: Array(lower[start...]), original: Array(list[start...]))]
            }),
        Mistake(
            "signature-input-spacing", "Signature-Input has spaces that its canonical form does not have",
            mend: "write one space between components and none elsewhere (RFC 8941 §4.1)", of: [.messageSignatures],
            .repair { draft, _ in
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
                mended.set("Signature-Input", canonical.text)
                return [Repair(draft: mended, written: Array(canonical[start...]), original: Array(input[mark...]))]
            }),
        Mistake(
            "timestamp-format", "the timestamp was written in another form",
            mend: "write it as yyyy-MM-dd-HH:mm:ss", of: [.formMD5],
            .repair { draft, _ in
                draft.withParameters { text in
                    var pairs = Pairs(text)
                    for index in pairs.all.indices where pairs.all[index].name == [UInt8]("timestamp") {
                        var time = Escapes.decode(pairs.all[index].value ?? [], plus: .space)
                        guard time.count >= 19, time[10] == .space || time[10] == UInt8(ascii: "T") else { continue }
                        time[10] = UInt8(ascii: "-")
                        pairs.all[index].value = Escapes.strict(Array(time[..<19]))
                    }
                    return [pairs.text]
                }.flatMap { mended -> [Repair] in
                    guard let sent = timestamp(draft), let written = timestamp(mended) else { return [] }
                    return [Repair(draft: mended, written: written, original: sent)]
                }
            }),
        Mistake(
            "body-compressed", "the body was compressed after it was signed",
            mend: "compress first and sign what is sent, or turn compression off in the HTTP library",
            of: [.formMD5, .authV4],
            .repair { draft, _ in
                Inflate.bodies(of: draft).map { body in
                    var plain = draft.with(\.body, body)
                    plain.fields.removeAll { $0.name.lowercased() == "content-encoding" }
                    return Repair(draft: plain, written: [], original: [])
                }
            }),
    ]

    /// Names that Signature-Input lists and the request does not have.
    private static func missing(in draft: Draft) -> [String] {
        guard let input = draft.value(of: "signature-input")?.text, let list = input.split(separator: ")").first else {
            return []
        }
        let there = Set(
            draft.fields.map { $0.name.lowercased() } + ["host"] + (draft.body.isEmpty ? [] : ["content-length"]))
        return list.split(separator: "\"").map(String.init).filter {
            $0.first?.isLetter == true && $0.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" }
                && !there.contains($0)
        }
    }

    private static func withDigests(_ draft: Draft) -> [Repair] {
        let short = SHA256.digest(draft.body.span)
        let long = SHA512.digest(draft.body.span)
        return [
            "sha-256=:\(Base64.encode(short.span, .standard)):", "sha-512=:\(Base64.encode(long.span, .standard)):",
        ].map { adding("content-digest", $0, to: draft) }
    }

    private static func adding(_ name: String, _ value: String, to draft: Draft) -> Repair {
        var mended = draft
        mended.fields.append(Draft.Field(name, value))
        return Repair(draft: mended, written: [], original: [])
    }

    /// A parameter's value in Signature-Input.
    private static func replacing(_ draft: Draft, after mark: String, with value: String) -> [Repair] {
        guard let input = draft.value(of: "signature-input"), let start = input.firstRange(of: [UInt8](mark)) else {
            return []
        }
        let end =
            input[start.upperBound...].firstIndex { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
            ?? input.endIndex
        let original = Array(input[start.lowerBound..<end])
        let written = [UInt8](mark + value)
        guard written != original else { return [] }
        var mended = draft
        mended.set("Signature-Input", (input[..<start.lowerBound] + written + input[end...]).text)
        return [Repair(draft: mended, written: written, original: original)]
    }

    private static func timestamp(_ draft: Draft) -> [UInt8]? {
        let text = draft.isForm ? draft.body : draft.query ?? []
        return Pairs(text).all.first { $0.name == [UInt8]("timestamp") }?.value.map { Escapes.decode($0, plus: .space) }
    }
}

extension Array<UInt8>.SubSequence {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
