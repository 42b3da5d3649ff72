import CountersignSchemes
import CountersignWire

extension Mistake {
    static let queries = [
        Mistake(
            code: "plus-for-space",
            sentence: "one side wrote a space as + and the other as %20, or a + as it is",
            remedy: "write a space as %20 and a plus as %2B, both where it is signed and where it is sent",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters { text in
                    [("+", "%20"), ("%20", "+"), ("+", "%2B"), ("%2B", "+")].map { old, new in
                        text.replacing([UInt8](old), with: [UInt8](new))
                    }
                }
            }),
        Mistake(
            code: "query-decoded", sentence: "the decoded query was signed, not the one that was sent",
            remedy: "sign the query as it stands in the request line",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters {
                    [PercentEncodingVariants.decode($0, plus: .space), PercentEncodingVariants.decode($0)]
                }
            }),
        Mistake(
            code: "escape-case", sentence: "the percent-escapes were signed in the other case (%2f for %2F)",
            remedy: "sign the bytes that are sent; RFC 3986 asks for upper-case digits in both",
            scope: .parameters,
            correction: .request { draft in
                draft.withPath {
                    [PercentEncodingVariants.lowerCase($0), PercentEncodingVariants.upperCase($0)]
                }
                    + draft.withParameters {
                        [PercentEncodingVariants.lowerCase($0), PercentEncodingVariants.upperCase($0)]
                    }
            }),
        Mistake(
            code: "query-re-encoded",
            sentence: "the query was signed in another percent-encoding than it was sent in",
            remedy: "build the query once, and sign and send the same bytes",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters { text in
                    let pairs = QueryPairs(text)
                    let again = [
                        PercentEncodingVariants.strict, PercentEncodingVariants.form,
                        PercentEncodingVariants.component,
                    ].flatMap { encode in
                        [.space, UInt8(ascii: "+")].map { plus in
                            pairs.mapped { encode(PercentEncodingVariants.decode($0, plus: plus)) }
                        }
                    }
                    return again + [pairs.mapped(PercentEncodingVariants.strict)]
                }
            }),
        Mistake(
            code: "query-order",
            sentence: "the parameters were signed in another order than they were sent in",
            remedy: "sign the query in the order in which it is sent",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters { QueryPairs($0).orders }
            }),
        Mistake(
            code: "query-equals",
            sentence: "a parameter without a value was signed with = and sent without it, or the reverse",
            remedy: "write such a parameter in one way, and sign and send the same bytes",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters { text in
                    var (with, without) = (QueryPairs(text), QueryPairs(text))
                    with.all = with.all.map { ($0.name, $0.value ?? []) }
                    without.all = without.all.map { ($0.name, $0.value?.isEmpty == true ? nil : $0.value) }
                    return [with.text, without.text]
                }
            }),
        Mistake(
            code: "query-left-out", sentence: "the query was not signed",
            remedy: "sign the whole target; add parameters before signing",
            correction: .request { draft in
                draft.query == nil ? [] : [draft.with(\.target, setTo: draft.path)]
            }),
        Mistake(
            code: "query-added", sentence: "a parameter was added after signing, or was left out of it",
            remedy: "sign after the last parameter is in place",
            scope: .parameters,
            correction: .request { draft in
                draft.withParameters { text in
                    let pairs = QueryPairs(text)
                    guard (2...16).contains(pairs.all.count) else { return [] }
                    return pairs.all.indices.map { index in
                        var fewer = pairs
                        fewer.all.remove(at: index)
                        return fewer.text
                    }
                }
            }),
        Mistake(
            code: "query-mark", sentence: "@query was signed without its leading question mark",
            remedy:
                "the value of @query begins with ?, and is ? alone where there is no query (RFC 9421 §2.2.7)",
            schemes: [.messageSignatures],
            correction: .text { input in
                [input.text.replacing([UInt8]("\"@query\": ?"), with: [UInt8]("\"@query\": "))]
            }),
    ]
}
