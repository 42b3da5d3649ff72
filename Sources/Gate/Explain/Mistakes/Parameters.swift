import CountersignSchemes
import CountersignWire

extension Mistake {
    /// Schemes that sign `k=v&k=v`: which parameters, in which order, in which spelling.
    static let parameters = [
        Mistake(
            "values-encoded", "the parameters were signed percent-encoded",
            mend: "sign names and values as they are, before they are encoded for sending", of: decoded,
            .text { spelling in
                let text = ParameterText(spelling)
                return [Escapes.strict, Escapes.form, Escapes.component, { Escapes.lowerCase(Escapes.strict($0)) }]
                    .flatMap { encode in
                        [text.mapped(value: encode), text.mapped(name: encode, value: encode)]
                    }
            }),
        Mistake(
            "parameter-order", "the parameters were signed in the order in which they were sent, or sorted otherwise",
            mend: "sort the parameters by the bytes of their names", of: joined,
            .text { spelling in
                let text = ParameterText(spelling)
                let sent = sentNames(spelling).map { Escapes.decode($0, plus: .space) }
                func place(_ part: [UInt8]) -> Int {
                    let name = Array(part.prefix { $0 != .equals })
                    return sent.firstIndex(of: name) ?? sent.firstIndex { $0.map(ASCII.lowercased) == name }
                        ?? sent.count
                }
                let asSent = text.parts.sorted { place($0) < place($1) }
                let folded = text.parts.sorted {
                    $0.map(ASCII.lowercased).lexicographicallyPrecedes($1.map(ASCII.lowercased))
                }
                let backwards = Array(text.parts.reversed())
                let wholes = text.parts.sorted { $0.lexicographicallyPrecedes($1) }
                return [text.parts, asSent, folded, backwards, wholes].flatMap {
                    text.unsorted($0) + [text.text(of: $0)]
                }
            }),
        Mistake(
            "empty-left-out", "parameters without a value were sent and not signed",
            mend: "sign every parameter that is sent, as name= where it has no value", of: joined,
            .text { spelling in
                let text = ParameterText(spelling)
                return [text.text(of: text.parts.filter { $0.last != .equals })]
            }),
        Mistake(
            "parameter-name-case", "the names of parameters were signed in another case",
            mend: "sign the names in the case that the scheme asks for", of: joined,
            .text { spelling in
                let text = ParameterText(spelling)
                let sent = sentNames(spelling).map { Escapes.decode($0, plus: .space) }
                let asSent: ([UInt8]) -> [UInt8] = { name in
                    sent.first { $0.map(ASCII.lowercased) == name.map(ASCII.lowercased) } ?? name
                }
                let changes: [([UInt8]) -> [UInt8]] = [
                    { $0.map(ASCII.lowercased) }, asSent, { [UInt8]($0.text.uppercased()) },
                ]
                return changes.flatMap { change in
                    let parts = text.parts.map { part in
                        let name = Array(part.prefix { $0 != .equals })
                        return change(name) + part.dropFirst(name.count)
                    }
                    return [text.text(of: parts), text.text(of: parts.sorted { $0.lexicographicallyPrecedes($1) })]
                }
            }),
    ]

    private static let joined: Set<SchemeName> = [.formMD5, .authV1, .authV2, .authV4]
    private static let decoded: Set<SchemeName> = [.formMD5, .authV1, .authV2]

    /// As they are written, in their order.
    private static func sentNames(_ spelling: Spelling) -> [[UInt8]] {
        let draft = spelling.draft
        if spelling.scheme == .authV4, let members = (try? JSONReader.read(draft.body))?.root.members {
            return members.map { [UInt8]($0.name) }
        }
        let isInBody = spelling.scheme == .formMD5 && draft.isForm
        return Pairs(isInBody ? draft.body : draft.query ?? []).all.map(\.name)
    }
}
