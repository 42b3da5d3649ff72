import CountersignSchemes
import CountersignWire

extension Mistake {
    static let queries = [
        Mistake(
            "plus-for-space", "one side wrote a space as + and the other as %20, or a + as it is",
            mend: "write a space as %20 and a plus as %2B, both where it is signed and where it is sent",
            .request { draft in
                draft.withParameters { text in
                    [("+", "%20"), ("%20", "+"), ("+", "%2B"), ("%2B", "+")].map { old, new in
                        text.replacing([UInt8](old), with: [UInt8](new))
                    }
                }
            }),
        Mistake(
            "query-decoded", "the decoded query was signed, not the one that was sent",
            mend: "sign the query as it stands in the request line",
            .request { draft in
                draft.withParameters { [Escapes.decode($0, plus: .space), Escapes.decode($0)] }
            }),
        Mistake(
            "escape-case", "the percent-escapes were signed in the other case (%2f for %2F)",
            mend: "sign the bytes that are sent; RFC 3986 asks for upper-case digits in both",
            .request { draft in
                draft.withPath { [Escapes.lowerCase($0), Escapes.upperCase($0)] }
                    + draft.withParameters { [Escapes.lowerCase($0), Escapes.upperCase($0)] }
            }),
        Mistake(
            "query-re-encoded", "the query was signed in another percent-encoding than it was sent in",
            mend: "build the query once, and sign and send the same bytes",
            .request { draft in
                draft.withParameters { text in
                    let pairs = Pairs(text)
                    let again = [Escapes.strict, Escapes.form, Escapes.component].flatMap { encode in
                        [.space, UInt8(ascii: "+")].map { plus in
                            pairs.mapped { encode(Escapes.decode($0, plus: plus)) }
                        }
                    }
                    return again + [pairs.mapped(Escapes.strict)]
                }
            }),
        Mistake(
            "query-order", "the parameters were signed in another order than they were sent in",
            mend: "sign the query in the order in which it is sent",
            .request { draft in
                draft.withParameters { Pairs($0).orders }
            }),
        Mistake(
            "query-equals", "a parameter without a value was signed with = and sent without it, or the reverse",
            mend: "write such a parameter in one way, and sign and send the same bytes",
            .request { draft in
                draft.withParameters { text in
                    var (with, without) = (Pairs(text), Pairs(text))
                    with.all = with.all.map { ($0.name, $0.value ?? []) }
                    without.all = without.all.map { ($0.name, $0.value?.isEmpty == true ? nil : $0.value) }
                    return [with.text, without.text]
                }
            }),
        Mistake(
            "query-left-out", "the query was not signed",
            mend: "sign the whole target; add parameters before signing",
            .request { draft in
                draft.query == nil ? [] : [draft.with(\.target, draft.path)]
            }),
        Mistake(
            "query-added", "a parameter was added after signing, or was left out of it",
            mend: "sign after the last parameter is in place",
            .request { draft in
                draft.withParameters { text in
                    let pairs = Pairs(text)
                    guard (2...16).contains(pairs.all.count) else { return [] }
                    return pairs.all.indices.map { index in
                        var fewer = pairs
                        fewer.all.remove(at: index)
                        return fewer.text
                    }
                }
            }),
        Mistake(
            "query-mark", "@query was signed without its leading question mark",
            mend: "the value of @query begins with ?, and is ? alone where there is no query (RFC 9421 §2.2.7)",
            of: [.messageSignatures],
            .text { spelling in
                [spelling.text.replacing([UInt8]("\"@query\": ?"), with: [UInt8]("\"@query\": "))]
            }),
    ]
}
