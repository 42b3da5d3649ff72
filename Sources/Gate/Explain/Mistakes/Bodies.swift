import CountersignSchemes
import CountersignWire

extension Mistake {
    /// A body that is not the one that was signed. Schemes that sign a digest have these tried on the digest,
    /// which is what the body is compared with; those that read the body have them tried as requests.
    static let bodies = [
        Mistake(
            code: "body-compressed", sentence: "the body was compressed after it was signed",
            remedy: "compress first and sign what is sent, or turn compression off in the HTTP library",
            scope: .compressed,
            correction: .request { draft in
                Inflate.bodies(of: draft).map { inflated in
                    var plain = draft.with(\.body, setTo: inflated)
                    plain.fields.removeAll { $0.name.lowercased() == "content-encoding" }
                    return plain
                }
            }),
        Mistake(
            code: "body-line-ends",
            sentence: "the body's line ends were changed, or an end of line was added or cut off",
            remedy: "send the body as bytes: no text mode, no editor's last newline",
            scope: .body,
            correction: .request { draft in
                guard draft.body.count <= ExplanationBudget.largestBody, !draft.body.isEmpty else {
                    return []
                }
                let unix = draft.body.replacing([0x0D, .newline], with: [.newline])
                var found = [
                    unix, unix.replacing([.newline], with: [0x0D, .newline]), draft.body + [.newline],
                ]
                if draft.body.last == .newline { found.append(Array(draft.body.dropLast())) }
                found += [draft.body + [0x0D, .newline], draft.body.trimmed]
                return found.filter { $0 != draft.body }.map { draft.with(\.body, setTo: $0) }
            }),
        Mistake(
            code: "body-reserialised",
            sentence:
                "the JSON of the body was written anew after it was signed: other spaces, order or escapes",
            remedy: "turn the value into bytes once, and sign and send those bytes",
            scope: .json,
            correction: .request { draft in
                JSONVariants.variants(of: draft.body).map { draft.with(\.body, setTo: $0) }
            }),
        Mistake(
            code: "form-reordered",
            sentence: "the form's parameters were signed in another order or escape than they were sent in",
            remedy: "write the form once, and sign and send the same bytes",
            scope: .parameters,
            correction: .request { draft in
                guard draft.isForm, draft.body.count <= ExplanationBudget.largestBody else { return [] }
                let pairs = QueryPairs(draft.body)
                let escaped = [
                    PercentEncodingVariants.strict, PercentEncodingVariants.form,
                    PercentEncodingVariants.component,
                ].map { encode in
                    pairs.mapped { encode(PercentEncodingVariants.decode($0, plus: .space)) }
                }
                return (pairs.orders + escaped + [PercentEncodingVariants.decode(draft.body, plus: .space)])
                    .filter { $0 != draft.body }.map { draft.with(\.body, setTo: $0) }
            }),
        Mistake(
            code: "body-character-set",
            sentence: "the body was signed in another character set, or with a byte order mark",
            remedy: "encode as UTF-8 once, without a byte order mark, and sign and send those bytes",
            scope: .body,
            correction: .request { draft in
                guard draft.body.count <= ExplanationBudget.largestBody, !draft.body.isEmpty else {
                    return []
                }
                let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
                var found = [mark + draft.body]
                if draft.body.starts(with: mark) { found.append(Array(draft.body.dropFirst(3))) }
                let latin = draft.body.text.unicodeScalars.map {
                    UInt8(exactly: $0.value) ?? UInt8(ascii: "?")
                }
                return (found + [latin, draft.body.flatMap { Array(String(Unicode.Scalar($0)).utf8) }])
                    .filter { $0 != draft.body }.map { draft.with(\.body, setTo: $0) }
            }),
        Mistake(
            code: "digest-of-nothing", sentence: "the empty body was signed, and another one was sent",
            remedy:
                "sign after the body is in place; a client that reads it as a stream may have read "
                + "it already",
            correction: .request { draft in draft.body.isEmpty ? [] : [draft.with(\.body, setTo: [])] }),
    ]

    /// What was done to a body whose digest is not the signed one; nil where nothing that we know of.
    static func bodyCause(
        in draft: Draft, expected: BodyExpectation, within budget: ExplanationBudget
    ) -> Cause? {
        var budget = budget
        for mistake in bodies {
            guard case .request(let undo) = mistake.correction, budget.take(mistake.work(on: draft)) else {
                continue
            }
            for other in undo(draft) where (try? expected.check(other.body.span)) != nil {
                return Cause(mistake)
            }
        }
        return nil
    }
}
