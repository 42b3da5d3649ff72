import CountersignSchemes
import CountersignWire

extension Mistake {
    /// Schemes that sign `k=v&k=v`: which parameters, in which order, in which input.
    static let parameters = [
        Mistake(
            code: "values-encoded", sentence: "the parameters were signed percent-encoded",
            remedy: "sign names and values as they are, before they are encoded for sending",
            schemes: decoded,
            correction: .text { input in
                let text = ParameterString(input)
                return [
                    PercentEncodingVariants.strict, PercentEncodingVariants.form,
                    PercentEncodingVariants.component,
                    { PercentEncodingVariants.lowerCase(PercentEncodingVariants.strict($0)) },
                ]
                .flatMap { encode in
                    [text.mapped(value: encode), text.mapped(name: encode, value: encode)]
                }
            }),
        Mistake(
            code: "parameter-order",
            sentence: "the parameters were signed in the order in which they were sent, or sorted otherwise",
            remedy: "sort the parameters by the bytes of their names", schemes: joined,
            correction: .text { input in
                let text = ParameterString(input)
                let sent = sentNames(input).map { PercentEncodingVariants.decode($0, plus: .space) }
                let places = firstPlaces(of: sent)
                let lowerPlaces = firstPlaces(of: sent.map { $0.map(ASCII.lowercased) })
                let placed = text.parts.map { part in
                    let name = Array(part.prefix { $0 != .equals })
                    return (place: places[name] ?? lowerPlaces[name] ?? sent.count, part: part)
                }
                let asSent = placed.sorted { $0.place < $1.place }.map(\.part)
                let folded = text.parts.map { (lower: $0.map(ASCII.lowercased), part: $0) }
                    .sorted { $0.lower.lexicographicallyPrecedes($1.lower) }.map(\.part)
                let backwards = Array(text.parts.reversed())
                let wholes = text.parts.sorted { $0.lexicographicallyPrecedes($1) }
                return [text.parts, asSent, folded, backwards, wholes].flatMap {
                    text.unsorted($0) + [text.text(of: $0)]
                }
            }),
        Mistake(
            code: "empty-left-out", sentence: "parameters without a value were sent and not signed",
            remedy: "sign every parameter that is sent, as name= where it has no value", schemes: joined,
            correction: .text { input in
                let text = ParameterString(input)
                return [text.text(of: text.parts.filter { $0.last != .equals })]
            }),
        Mistake(
            code: "parameter-name-case", sentence: "the names of parameters were signed in another case",
            remedy: "sign the names in the case that the scheme asks for", schemes: joined,
            correction: .text { input in
                let text = ParameterString(input)
                let sent = sentNames(input).map { PercentEncodingVariants.decode($0, plus: .space) }
                let places = firstPlaces(of: sent.map { $0.map(ASCII.lowercased) })
                let asSent: ([UInt8]) -> [UInt8] = { name in
                    places[name.map(ASCII.lowercased)].map { sent[$0] } ?? name
                }
                let changes: [([UInt8]) -> [UInt8]] = [
                    { $0.map(ASCII.lowercased) }, asSent, { [UInt8]($0.text.uppercased()) },
                ]
                return changes.flatMap { change in
                    let parts = text.parts.map { part in
                        let name = Array(part.prefix { $0 != .equals })
                        return change(name) + part.dropFirst(name.count)
                    }
                    return [
                        text.text(of: parts),
                        text.text(of: parts.sorted { $0.lexicographicallyPrecedes($1) }),
                    ]
                }
            }),
    ]

    private static let joined: Set<SchemeName> = [.formMD5, .authV1, .authV2, .authV4]
    private static let decoded: Set<SchemeName> = [.formMD5, .authV1, .authV2]

    private static func firstPlaces(of names: [[UInt8]]) -> [[UInt8]: Int] {
        Dictionary(names.enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: min)
    }

    /// As they are written, in their order.
    private static func sentNames(_ input: SigningInput) -> [[UInt8]] {
        let draft = input.draft
        if input.scheme == .authV4, let members = (try? JSONReader.read(draft.body))?.root.members {
            return members.map { [UInt8]($0.name) }
        }
        let isInBody = input.scheme == .formMD5 && draft.isForm
        return QueryPairs(isInBody ? draft.body : draft.query ?? []).all.map(\.name)
    }
}

/// A string to sign that ends in `k=v&k=v`, taken apart, so that it can be written as other signers write it.
struct ParameterString {
    /// The lines before the parameters, each with its end.
    private let lines: [UInt8]
    /// `k=v`, without form-md5's `private_key`.
    let parts: [[UInt8]]
    private let scheme: SchemeName
    private let keyPlace: FormMD5.KeyPosition

    init(_ input: SigningInput) {
        scheme = input.scheme
        if scheme == .formMD5 {
            let form = FormMD5String(input.text)
            lines = []
            (parts, keyPlace) = (form.parts, form.keyPlace)
        } else {
            keyPlace = .pair
            let bytes = input.text.bytes
            let start = bytes.lastIndex(of: .newline).map { $0 + 1 } ?? 0
            lines = Array(bytes[..<start])
            parts = bytes[start...].split(separator: .ampersand).map { Array($0) }
        }
    }

    func text(of parts: [[UInt8]]) -> SigningString {
        if scheme == .formMD5 { return FormMD5String.text(of: parts, keyPlace: keyPlace) }
        return SigningString(bytes: lines + Array(parts.joined(separator: [.ampersand])))
    }

    /// With the parts as they stand, form-md5's secret first or last.
    func unsorted(_ parts: [[UInt8]]) -> [SigningString] {
        guard scheme == .formMD5 else { return [text(of: parts)] }
        let key = [UInt8]("private_key=")
        let joined = Array(parts.joined(separator: [.ampersand]))
        if keyPlace == .appended {
            return [
                SigningString(bytes: joined, secretAt: joined.count),
                SigningString(bytes: joined, secretAt: 0),
            ]
        }
        return [
            SigningString(bytes: joined + [.ampersand] + key, secretAt: joined.count + 1 + key.count),
            SigningString(bytes: key + [.ampersand] + joined, secretAt: key.count),
        ]
    }

    /// The same with each name and value changed.
    func mapped(name: ([UInt8]) -> [UInt8] = { $0 }, value: ([UInt8]) -> [UInt8]) -> SigningString {
        text(
            of: parts.map { part in
                guard let mark = part.firstIndex(of: .equals) else { return name(part) }
                return name(Array(part[..<mark])) + [.equals] + value(Array(part[(mark + 1)...]))
            })
    }
}
