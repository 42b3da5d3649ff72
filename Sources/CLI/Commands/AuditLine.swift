import CountersignAuthority
import CountersignWire

/// One audit record for people and scripts. It may have been altered by anybody, so it is read as any text from outside.
struct AuditLine {
    private let number: Int64
    /// Nil where what stands there is no record.
    private let document: JSONDocument?

    init(_ row: AuditRow) {
        number = row.number
        document = row.document
    }

    var json: JSONValue {
        guard let document else { return ["number": .integer(number), "unreadable": true] }
        return JSONValue(document.root, of: document)
    }

    /// Number, time, who, what, to what, details.
    var cells: [String] {
        guard let document else { return [String(number), "-", "-", "unreadable", "-", "-"] }
        let root = document.root
        let time = root["time"].flatMap { document.integer($0, in: 0...253_402_300_799) }
        let actor =
            root["actor"]?["name"]?.string ?? root["actor"]?["uid"].map { "uid \(document.text(of: $0))" } ?? "-"
        let details = (root["details"]?.members ?? []).map { member in
            "\(member.name)=\(member.value.string ?? document.text(of: member.value))"
        }
        return [
            String(number), time.map { CivilTime(seconds: Int64($0)).description } ?? "-", actor,
            root["action"]?.string ?? "-",
            root["release"]?.string ?? root["app"]?.string ?? "-", details.joined(separator: " "),
        ].map(AuditLine.harmless)
    }

    /// Without control characters, which could make a terminal show something else.
    private static func harmless(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}

extension JSONValue {
    /// What was read, to be written again.
    fileprivate init(_ value: JSON, of document: JSONDocument) {
        switch value.content {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .number:
            self =
                document.integer(value, in: Int.min...Int.max).map { .integer(Int64($0)) }
                ?? .string(document.text(of: value))
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map { JSONValue($0, of: document) })
        case .object(let members): self = .object(members.map { ($0.name, JSONValue($0.value, of: document)) })
        }
    }
}
