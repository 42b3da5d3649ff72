import CountersignSchemes
import CountersignWire

extension Mistake {
    /// A body that is not the one that was signed. Schemes that sign a digest have these tried on the digest, which is
    /// what the body is compared with; those that read the body have them tried as requests.
    static let bodies = [
        Mistake(
            "body-compressed", "the body was compressed after it was signed",
            mend: "compress first and sign what is sent, or turn compression off in the HTTP library",
            .request { draft in
                Inflate.bodies(of: draft).map { inflated in
                    var plain = draft.with(\.body, inflated)
                    plain.fields.removeAll { $0.name.lowercased() == "content-encoding" }
                    return plain
                }
            }),
        Mistake(
            "body-line-ends", "the body's line ends were changed, or an end of line was added or cut off",
            mend: "send the body as bytes: no text mode, no editor's last newline",
            .request { draft in
                guard draft.body.count <= Budget.body, !draft.body.isEmpty else { return [] }
                let unix = draft.body.replacing([0x0D, .newline], with: [.newline])
                var found = [unix, unix.replacing([.newline], with: [0x0D, .newline]), draft.body + [.newline]]
                if draft.body.last == .newline { found.append(Array(draft.body.dropLast())) }
                found += [draft.body + [0x0D, .newline], draft.body.trimmed]
                return found.filter { $0 != draft.body }.map { draft.with(\.body, $0) }
            }),
        Mistake(
            "body-reserialised",
            "the JSON of the body was written anew after it was signed: other spaces, order or escapes",
            mend: "turn the value into bytes once, and sign and send those bytes",
            .request { draft in
                JSONRewriting.spellings(of: draft.body).map { draft.with(\.body, $0) }
            }),
        Mistake(
            "form-reordered", "the form's parameters were signed in another order or escape than they were sent in",
            mend: "write the form once, and sign and send the same bytes",
            .request { draft in
                guard draft.isForm, draft.body.count <= Budget.body else { return [] }
                let pairs = Pairs(draft.body)
                let escaped = [Escapes.strict, Escapes.form, Escapes.component].map { encode in
                    pairs.mapped { encode(Escapes.decode($0, plus: .space)) }
                }
                return (pairs.orders + escaped + [Escapes.decode(draft.body, plus: .space)])
                    .filter { $0 != draft.body }.map { draft.with(\.body, $0) }
            }),
        Mistake(
            "body-character-set", "the body was signed in another character set, or with a byte order mark",
            mend: "encode as UTF-8 once, without a byte order mark, and sign and send those bytes",
            .request { draft in
                guard draft.body.count <= Budget.body, !draft.body.isEmpty else { return [] }
                let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
                var found = [mark + draft.body]
                if draft.body.starts(with: mark) { found.append(Array(draft.body.dropFirst(3))) }
                let latin = draft.body.text.unicodeScalars.map { UInt8(exactly: $0.value) ?? UInt8(ascii: "?") }
                return (found + [latin, draft.body.flatMap { Array(String(Unicode.Scalar($0)).utf8) }])
                    .filter { $0 != draft.body }.map { draft.with(\.body, $0) }
            }),
        Mistake(
            "digest-of-nothing", "the empty body was signed, and another one was sent",
            mend: "sign after the body is in place; a client that reads it as a stream may have read it already",
            .request { draft in draft.body.isEmpty ? [] : [draft.with(\.body, [])] }),
    ]

    /// What was done to a body whose digest is not the signed one; nil where nothing that we know of.
    static func ofBody(_ draft: Draft, _ expected: BodyExpectation) -> Cause? {
        for mistake in bodies {
            guard case .request(let undo) = mistake.undo else { continue }
            for other in undo(draft) where (try? expected.check(other.body.span)) != nil {
                return Cause(mistake)
            }
        }
        return nil
    }
}
