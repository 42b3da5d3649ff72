import CountersignSchemes
import CountersignWire

extension Mistake {
    /// Fields that the signature names, and what happens to them on the way.
    static let fields = [
        Mistake(
            code: "header-added",
            sentence: "a line or an element was added to a signed field on the way, as proxies do",
            remedy:
                "leave fields that proxies write (X-Forwarded-For, Via, Accept-Encoding) out of the "
                + "signature",
            schemes: signsFields,
            scope: .fields,
            correction: .request { draft in
                let counts = countedNames(draft)
                let lines = draft.fields.indices.filter { index in
                    counts[draft.fields[index].name.lowercased(), default: 0] > 1
                }
                let fewer = lines.map { index in
                    var changed = draft
                    changed.fields.remove(at: index)
                    return changed
                }
                return fewer
                    + draft.withValue { value in
                        let parts = value.split(at: UInt8(ascii: ",")).map(\.trimmed)
                        guard parts.count > 1 else { return [] }
                        return [Array(parts.dropLast()), Array(parts.dropFirst())].map {
                            Array($0.joined(separator: [UInt8](", ")))
                        }
                    }
            }),
        Mistake(
            code: "header-folded",
            sentence:
                "white space or commas in a signed field were changed on the way, or lines of it joined",
            remedy: "send each signed field as one line, with single spaces", schemes: signsFields,
            scope: .fields,
            correction: .request { draft in
                draft.withValue { value in
                    [
                        value.replacing([UInt8](", "), with: [UInt8](",")),
                        value.replacing([UInt8](","), with: [UInt8](", ")),
                        value.replacing([UInt8](" "), with: [UInt8]("  ")),
                        Array(value.split(separator: .space).joined(separator: [.space])),
                    ]
                } + joinedLines(draft)
            }),
        Mistake(
            code: "content-type-changed",
            sentence: "the content type was signed without the parameter that was sent, or the reverse",
            remedy: "set Content-Type, its charset and all, before signing; HTTP libraries add one",
            schemes: signsFields,
            correction: .request { draft in
                draft.withValue(of: "content-type") { type in
                    let bare =
                        type.firstIndex(of: UInt8(ascii: ";")).map { Array(type[..<$0]).trimmed } ?? type
                    return [bare]
                        + ["; charset=utf-8", ";charset=utf-8", "; charset=UTF-8", ";charset=UTF-8"].map {
                            bare + [UInt8]($0)
                        }
                }
            }),
        Mistake(
            code: "header-value-case", sentence: "a field's value was signed in lower case",
            remedy: "names of fields have no case, values do: sign them as they are sent",
            schemes: signsFields,
            scope: .fields, correction: .request { draft in draft.withValue { [$0.map(ASCII.lowercased)] } }),
        Mistake(
            code: "header-name-case", sentence: "names of fields were signed with capitals",
            remedy: "names of fields are signed in lower case (RFC 9421 §2.1)", schemes: [.messageSignatures],
            correction: .text { input in
                let lines = input.text.bytes.split(at: .newline)
                return [capitals(lines, in: lines.indices), capitals(lines, in: lines.indices.dropLast())]
            }),
    ]

    private static let signsFields: Set<SchemeName> = [.messageSignatures, .sigV4]

    private static func countedNames(_ draft: Draft) -> [String: Int] {
        Dictionary(draft.fields.map { ($0.name.lowercased(), 1) }, uniquingKeysWith: +)
    }

    /// Fields of the same name as one line, where the signer had one.
    private static func joinedLines(_ draft: Draft) -> [Draft] {
        countedNames(draft).filter { $0.value > 1 }.keys.sorted().map { name in
            var changed = draft
            let values = draft.fields.filter { $0.name.lowercased() == name }.map(\.value)
            changed.fields.removeAll { $0.name.lowercased() == name }
            var joined = Draft.Field(name: name, value: "")
            joined.value = Array(values.joined(separator: [UInt8](",")))
            changed.fields.append(joined)
            return changed
        }
    }

    /// `"content-type"` as `"Content-Type"`, in those lines.
    private static func capitals(_ lines: [[UInt8]], in range: Range<Int>) -> SigningString {
        var lines = lines
        for index in range {
            var isStart = false
            var isQuoted = false
            for place in lines[index].indices {
                let byte = lines[index][place]
                if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
                if isStart, ASCII.isLetter(byte) { lines[index][place] = byte & 0xDF }
                isStart = isQuoted && (byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "-"))
                // Only names are wanted: the rest of a line is a value, but that the last one lists names.
                if index < lines.count - 1, byte == UInt8(ascii: ":"), !isQuoted { break }
                if byte == UInt8(ascii: ")"), !isQuoted { break }
            }
        }
        return SigningString(bytes: Array(lines.joined(separator: [.newline])))
    }
}
