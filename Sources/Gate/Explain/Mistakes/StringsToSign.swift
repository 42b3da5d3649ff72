import CountersignSchemes
import CountersignWire

extension Mistake {
    /// The right request and the right secret, but a string to sign of another make.
    static let stringsToSign = [
        Mistake(
            code: "line-ends",
            sentence: "the lines of the string to sign ended in something else than one LF between them",
            remedy:
                "join the lines by a single LF, with none after the last; in PHP and shells \"\\n\" "
                + "needs double quotes",
            schemes: Set(SchemeName.signing).subtracting([.formMD5]),
            correction: .text { input in
                let text = input.text
                return [
                    text.replacing([.newline], with: [0x0D, .newline]),
                    text.replacing([.newline], with: [UInt8]("\\n")),
                    SigningString(bytes: text.bytes + [.newline]),
                    SigningString(bytes: text.bytes + [0x0D, .newline]),
                    SigningString(
                        bytes: text.replacing([.newline], with: [0x0D, .newline]).bytes + [0x0D, .newline]),
                ]
            }),
        Mistake(
            code: "signature-params",
            sentence: "the last line, \"@signature-params\", was left out or written otherwise",
            remedy:
                "end the signature base with \"@signature-params\": and the value of Signature-Input "
                + "after its label=",
            schemes: [.messageSignatures],
            correction: .text { input in
                let mark = [UInt8]("\"@signature-params\": ")
                guard let start = input.text.bytes.ranges(of: mark).last else { return [] }
                let (lines, value) = (
                    input.text.bytes[..<start.lowerBound], input.text.bytes[start.upperBound...]
                )
                let whole = input.draft.value(of: "signature-input") ?? []
                let endings: [[UInt8]] = [
                    [], mark + whole, [UInt8]("@signature-params: ") + value, mark.dropLast() + value,
                    [UInt8]("\"signature-params\": ") + value,
                ]
                return [SigningString(bytes: Array(lines.dropLast()))]
                    + endings.map { SigningString(bytes: lines + $0) }
            }),
        Mistake(
            code: "component-order",
            sentence: "the components were signed in another order than Signature-Input lists them in",
            remedy: "write one line a component, in the order of the list", schemes: [.messageSignatures],
            correction: .text { input in
                let lines = input.text.bytes.split(at: .newline)
                guard let last = lines.last else { return [] }
                let before: ([UInt8], [UInt8]) -> Bool = { $0.lexicographicallyPrecedes($1) }
                return [Array(lines.dropLast().sorted(by: before)), Array(lines.dropLast().reversed())].map {
                    SigningString(bytes: Array(($0 + [last]).joined(separator: [.newline])))
                }
            }),
        Mistake(
            code: "old-string-to-sign",
            sentence:
                "the signature base is that of an older draft: names without quotes, or (request-target)",
            remedy:
                "spell the signature base as RFC 9421 §2.5 has it; a library for draft-cavage "
                + "signatures does not",
            schemes: [.messageSignatures],
            correction: .text { input in unquoted(input) + cavage(input) }),
        Mistake(
            code: "key-place",
            sentence: "the private key was put behind the parameters, and the policy wants it among them",
            remedy:
                "set the policy form-md5-key=appended for the app or this release, or sign private_key "
                + "as a parameter",
            schemes: [.formMD5],
            correction: .text { input in
                let form = FormMD5String(input.text)
                return form.keyPlace == .pair ? [FormMD5String.text(of: form.parts, keyPlace: .appended)] : []
            }),
        Mistake(
            code: "key-place",
            sentence: "the private key was signed as a parameter, and the policy wants it behind them",
            remedy:
                "set the policy form-md5-key=pair for the app or this release, or put the key behind the "
                + "last parameter",
            schemes: [.formMD5],
            correction: .text { input in
                let form = FormMD5String(input.text)
                return form.keyPlace == .appended ? [FormMD5String.text(of: form.parts, keyPlace: .pair)] : []
            }),
        Mistake(
            code: "old-string-to-sign",
            sentence: "the parameters were joined in an older way, without private_key=, or with key=",
            remedy:
                "write the private key where the policy form-md5-key says, and as docs/protocol.md spells it",
            schemes: [.formMD5],
            correction: .text { input in
                let parts = FormMD5String(input.text).parts
                let joined = [UInt8](parts.joined(separator: [.ampersand]))
                let keyed = ["&", "&key=", "&secret="].map { mark in
                    SigningString(bytes: joined + [UInt8](mark), secretAt: joined.count + mark.utf8.count)
                }
                let run = Array(parts.map { $0.filter { $0 != .equals } }.joined())
                return keyed + [
                    SigningString(bytes: joined, secretAt: 0), SigningString(bytes: run, secretAt: run.count),
                ]
            }),
    ]

    /// Drafts of RFC 9421 up to 05 wrote names without quotes, and some no last line.
    private static func unquoted(_ input: SigningInput) -> [SigningString] {
        let lines = input.text.bytes.split(at: .newline)
        let plain = lines.dropLast().map { line -> [UInt8] in
            guard line.first == UInt8(ascii: "\""),
                let end = line.dropFirst().firstIndex(of: UInt8(ascii: "\""))
            else {
                return line
            }
            return Array(line[1..<end] + line[(end + 1)...])
        }
        guard let last = lines.last else { return [] }
        return [plain + [last], plain + [last.filter { $0 != UInt8(ascii: "\"") }], plain].map {
            SigningString(bytes: Array($0.joined(separator: [.newline])))
        }
    }

    /// Source: draft-cavage-http-signatures-12 §2.3.
    private static func cavage(_ input: SigningInput) -> [SigningString] {
        let draft = input.draft
        let target = [UInt8]("(request-target): \(draft.method.lowercased()) ") + draft.target
        var rest: [[UInt8]] = []
        for line in input.text.bytes.split(at: .newline).dropLast() {
            guard let end = line.dropFirst().firstIndex(of: UInt8(ascii: "\"")) else { continue }
            let (name, value) = (Array(line[1..<end]), Array(line[(end + 1)...]))
            if name == [UInt8]("@authority") { rest.append([UInt8]("host") + value) }
            if name.first != UInt8(ascii: "@") { rest.append(name + value) }
        }
        var heads = [[target]]
        if case .unix(let created) = input.claim.created {
            heads += [
                [target, [UInt8]("(created): \(created)")], [[UInt8]("(created): \(created)"), target],
            ]
        }
        return heads.map { SigningString(bytes: Array(($0 + rest).joined(separator: [.newline]))) }
    }
}

/// form-md5's string to sign, taken apart.
struct FormMD5String {
    /// `k=v`, without `private_key`.
    let parts: [[UInt8]]
    let keyPlace: FormMD5.KeyPosition

    init(_ text: SigningString) {
        let key = [UInt8]("private_key=")
        let head = text.bytes[..<text.secretAt]
        // A value may end so, too; then the guess costs an explanation, and nothing else.
        keyPlace = head.elementsEqual(key) || head.ends(with: [.ampersand] + key) ? .pair : .appended
        let before = keyPlace == .pair ? head.dropLast(key.count) : head
        let after = text.bytes[text.secretAt...]
        parts = [before, after].flatMap { side in side.split(separator: .ampersand).map { Array($0) } }
    }

    /// With the secret in that place: `private_key` by the bytes of the names.
    static func text(of parts: [[UInt8]], keyPlace: FormMD5.KeyPosition) -> SigningString {
        if keyPlace == .appended {
            let joined = [UInt8](parts.joined(separator: [.ampersand]))
            return SigningString(bytes: joined, secretAt: joined.count)
        }
        let key = [UInt8]("private_key=")
        let place = parts.firstIndex { key.lexicographicallyPrecedes($0) } ?? parts.count
        let before = Array((parts[..<place] + [key]).joined(separator: [.ampersand]))
        let after = parts[place...].flatMap { [.ampersand] + $0 }
        return SigningString(bytes: before + after, secretAt: before.count)
    }
}

extension Array<UInt8>.SubSequence {
    fileprivate func ends(with suffix: [UInt8]) -> Bool { self.suffix(suffix.count).elementsEqual(suffix) }
}
