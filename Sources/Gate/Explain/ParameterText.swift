import CountersignSchemes
import CountersignWire

/// A string to sign that ends in `k=v&k=v`, taken apart, so that it can be written as other signers write it.
struct ParameterText {
    /// The lines before the parameters, each with its end.
    private let lines: [UInt8]
    /// `k=v`, without form-md5's `private_key`.
    let parts: [[UInt8]]
    private let scheme: SchemeName
    private let keyPlace: FormMD5.KeyPlace

    init(_ spelling: Spelling) {
        scheme = spelling.scheme
        if scheme == .formMD5 {
            let form = FormText(spelling.text)
            lines = []
            (parts, keyPlace) = (form.parts, form.keyPlace)
        } else {
            keyPlace = .pair
            let bytes = spelling.text.bytes
            let start = bytes.lastIndex(of: .newline).map { $0 + 1 } ?? 0
            lines = Array(bytes[..<start])
            parts = bytes[start...].split(separator: .ampersand).map { Array($0) }
        }
    }

    func text(of parts: [[UInt8]]) -> Text {
        if scheme == .formMD5 { return FormText.text(of: parts, keyPlace: keyPlace) }
        return Text(bytes: lines + Array(parts.joined(separator: [.ampersand])))
    }

    /// With the parts as they stand, form-md5's secret first or last.
    func unsorted(_ parts: [[UInt8]]) -> [Text] {
        guard scheme == .formMD5 else { return [text(of: parts)] }
        let key = [UInt8]("private_key=")
        let joined = Array(parts.joined(separator: [.ampersand]))
        if keyPlace == .appended {
            return [Text(bytes: joined, secretAt: joined.count), Text(bytes: joined, secretAt: 0)]
        }
        return [
            Text(bytes: joined + [.ampersand] + key, secretAt: joined.count + 1 + key.count),
            Text(bytes: key + [.ampersand] + joined, secretAt: key.count),
        ]
    }

    /// The same with each name and value changed.
    func mapped(name: ([UInt8]) -> [UInt8] = { $0 }, value: ([UInt8]) -> [UInt8]) -> Text {
        text(
            of: parts.map { part in
                guard let mark = part.firstIndex(of: .equals) else { return name(part) }
                return name(Array(part[..<mark])) + [.equals] + value(Array(part[(mark + 1)...]))
            })
    }
}
