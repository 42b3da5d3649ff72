import CountersignWire

/// The outermost members of a JSON object as an attacker handles them: any name as often as he likes.
package struct RawMembers: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package var name: String
        /// As JSON: `"shop"`, `7`.
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var members: [Member]

    package init(_ members: [Member]) { self.members = members }

    /// Nil for what is no JSON object.
    package init?(reading body: [UInt8]) {
        guard let document = try? JSONReader.read(body), let read = document.root.members else { return nil }
        members = read.map { Member($0.name, document.text(of: $0.value)) }
    }

    package subscript(_ name: String) -> String? { members.last { $0.name == name }?.value }

    /// With another value for that name; as it was, where there is none.
    package func setting(_ name: String, to text: String) -> RawMembers {
        RawMembers(members.map { $0.name == name ? Member(name, JSONValue.string(text).text) : $0 })
    }

    package var text: String {
        "{" + members.map { "\(JSONValue.string($0.name).text):\($0.value)" }.joined(separator: ",") + "}"
    }
}

extension RawRequest {
    package var members: RawMembers? { hasType("application/json") ? RawMembers(reading: body) : nil }

    /// The same with that body.
    package func with(_ members: RawMembers) -> RawRequest {
        var copy = self
        copy.fields["Content-Type"] = "application/json"
        copy.body = Array(members.text.utf8)
        return copy
    }
}

extension RawResponse {
    /// A member of the JSON object that the body is, as text; nil where it has none of that name.
    package func member(_ name: String) -> String? {
        guard let document = try? JSONReader.read(body), let value = document.root[name] else { return nil }
        return value.string ?? document.text(of: value)
    }
}
