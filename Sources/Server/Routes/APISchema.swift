import CountersignWire

/// The form of a JSON value: what a route accepts and answers, and what its OpenAPI document says. Source:
/// JSON Schema, draft 2020-12, of which this is a small part.
package indirect enum APISchema: Sendable {
    case text
    /// Text of so many characters.
    case sized(ClosedRange<Int>)
    /// Text that matches an expression of ECMA-262.
    case pattern(String)
    /// Text of so many characters at least, that a path segment or a name needs.
    case name
    case choice([String])
    case integer(ClosedRange<Int64>)
    /// Whole Unix seconds.
    case time
    case boolean
    case list(APISchema)
    /// Members of any name.
    case map(APISchema)
    case nullable(APISchema)
    /// Exactly these members.
    case object([APIMember])
    /// These members, and any others.
    case open([APIMember])
    /// Any object.
    case record

    package static let count = APISchema.integer(0...(1 << 53))

    /// As a JSON Schema.
    package var json: JSONValue { .object(members) }

    private var members: [(name: String, value: JSONValue)] {
        switch self {
        case .text: [("type", "string")]
        case .sized(let range):
            [
                ("type", "string"), ("minLength", .integer(Int64(range.lowerBound))),
                ("maxLength", .integer(Int64(range.upperBound))),
            ]
        case .pattern(let text): [("type", "string"), ("pattern", .string(text))]
        case .name:
            [("type", "string"), ("minLength", 1), ("maxLength", 256), ("pattern", "^[^\\u0000-\\u001f]+$")]
        case .choice(let words): [("type", "string"), ("enum", .strings(words))]
        case .integer(let range):
            [
                ("type", "integer"), ("minimum", .integer(range.lowerBound)),
                ("maximum", .integer(range.upperBound)),
            ]
        case .time: APISchema.count.members
        case .boolean: [("type", "boolean")]
        case .list(let element): [("type", "array"), ("items", element.json)]
        case .map(let value): [("type", "object"), ("additionalProperties", value.json)]
        case .nullable(let schema): [("anyOf", [schema.json, ["type": "null"]])]
        case .object(let members):
            APISchema.properties(of: members) + [("additionalProperties", false)]
        case .open(let members): APISchema.properties(of: members)
        case .record: [("type", "object")]
        }
    }

    /// Whether values are times, or null in place of one.
    package var isTime: Bool {
        switch self {
        case .time: true
        case .nullable(let schema): schema.isTime
        default: false
        }
    }

    /// The members that are declared.
    package var declaredMembers: [APIMember] {
        switch self {
        case .object(let members), .open(let members): members
        default: []
        }
    }

    private static func properties(of members: [APIMember]) -> [(name: String, value: JSONValue)] {
        [
            ("type", "object"), ("required", .strings(members.filter(\.isRequired).map(\.name))),
            ("properties", .object(members.map { (name: $0.name, value: $0.json) })),
        ]
    }

    /// What is wrong with a value of a request's body; nil if nothing is.
    package func flaw(in value: JSON, of document: JSONDocument, at place: String) -> String? {
        switch self {
        case .text, .pattern: value.string == nil ? "\(place): expected a string" : nil
        case .sized(let range):
            value.string.map { range.contains($0.unicodeScalars.count) } == true
                ? nil
                : "\(place): expected a string of \(range.lowerBound) to \(range.upperBound) characters"
        case .name:
            value.string.map {
                (1...256).contains($0.unicodeScalars.count) && !$0.unicodeScalars.contains { $0.value < 0x20 }
            }
                == true
                ? nil : "\(place): expected a string of 1 to 256 characters"
        case .choice(let words):
            value.string.map(words.contains) == true
                ? nil : "\(place): expected one of \(words.joined(separator: ", "))"
        case .integer(let range):
            document.integer(value, in: Int(range.lowerBound)...Int(range.upperBound)) == nil
                ? "\(place): expected a whole number from \(range.lowerBound) to \(range.upperBound)" : nil
        case .time: APISchema.count.flaw(in: value, of: document, at: place)
        case .boolean:
            if case .bool = value.content { nil } else { "\(place): expected true or false" }
        case .list(let element):
            value.elements.map { elements in
                elements.enumerated().lazy.compactMap {
                    element.flaw(in: $1, of: document, at: "\(place)[\($0)]")
                }.first
            } ?? "\(place): expected a list"
        case .map(let schema):
            value.members.map { members in
                members.lazy.compactMap { schema.flaw(in: $0.value, of: document, at: "\(place).\($0.name)") }
                    .first
            } ?? "\(place): expected an object"
        case .nullable(let schema):
            if case .null = value.content { nil } else { schema.flaw(in: value, of: document, at: place) }
        case .object(let known):
            value.members.map { flaw(in: $0, known: known, of: document, at: place) }
                ?? "\(place): expected an object"
        case .open, .record: value.members == nil ? "\(place): expected an object" : nil
        }
    }

    private func flaw(
        in members: [JSON.Member], known: [APIMember], of document: JSONDocument, at place: String
    ) -> String? {
        for member in members {
            guard let declared = known.first(where: { $0.name == member.name }) else {
                let names = known.map(\.name).joined(separator: ", ")
                return
                    "\(place): `\(member.name)` is not known; expected \(names.isEmpty ? "no member" : names)"
            }
            if let flaw = declared.schema.flaw(
                in: member.value, of: document, at: "\(place).\(declared.name)")
            {
                return flaw
            }
        }
        let missing = known.first { one in one.isRequired && !members.contains { $0.name == one.name } }
        return missing.map { "\(place): `\($0.name)` is missing" }
    }
}

/// A member of an object.
package struct APIMember: Sendable {
    package enum Presence: Sendable { case required, optional }

    package var name: String
    package var schema: APISchema
    package var meaning: String
    package var presence: Presence

    package init(
        _ name: String, schema: APISchema, presence: Presence = .required, meaning: String = ""
    ) {
        self.name = name
        self.schema = schema
        self.presence = presence
        self.meaning = meaning
    }

    package var isRequired: Bool { presence == .required }

    fileprivate var json: JSONValue {
        guard !meaning.isEmpty, case .object(let members) = schema.json else { return schema.json }
        return .object(members + [("description", .string(meaning))])
    }
}
