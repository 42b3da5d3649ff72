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
        let time = root["time"].flatMap { AuditLine.time($0, in: document) }
        let actor =
            root["actor"]?["name"]?.string ?? root["actor"]?["uid"].map { "uid \(document.text(of: $0))" } ?? "-"
        let details = (root["details"]?.members ?? []).map { member in
            "\(member.name)=\(text(of: member.value, named: member.name, in: document))"
        }
        return [
            String(number), time ?? "-", actor,
            root["action"]?.string ?? "-",
            root["release"]?.string ?? root["app"]?.string ?? "-", details.joined(separator: " "),
        ].map(AuditLine.harmless)
    }

    /// Texts as they are, times as every command prints them, and the steps of a retirement as they are
    /// given.
    private func text(of value: JSON, named name: String, in document: JSONDocument) -> String {
        if let text = value.string { return text }
        if name == "at" || name.hasSuffix("_at"), let time = AuditLine.time(value, in: document) { return time }
        if name == "rollout", let steps = value.elements {
            return steps.map { step in
                let percent = step["percent"].map { document.text(of: $0) } ?? "?"
                guard let since = step["since"], document.text(of: since) != "0" else { return percent }
                return "\(percent)@\(AuditLine.time(since, in: document) ?? "?")"
            }.joined(separator: ",")
        }
        return document.text(of: value)
    }

    private static func time(_ value: JSON, in document: JSONDocument) -> String? {
        document.integer(value, in: 0...253_402_300_799).map { Moment.text(Int64($0)) }
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
