import CountersignWire

/// Form parameters of any kind, decoded and in order: nothing is refused.
package struct RawForm: Sendable, Equatable {
    package struct Pair: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }

        package init(name: String, value: String) { self.init(name: name, value: Array(value.utf8)) }

        package var text: String { String(decoding: value, as: UTF8.self) }
    }

    package var pairs: [Pair]

    package init(_ pairs: [Pair]) { self.pairs = pairs }

    package init(reading text: some StringProtocol) {
        pairs = text.utf8.split(separator: UInt8(ascii: "&")).map { part in
            let parts = part.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return Pair(
                name: String(decoding: RawForm.decoded(parts.first ?? []), as: UTF8.self),
                value: RawForm.decoded(parts.count > 1 ? parts[1] : []))
        }
    }

    /// The last value of that name. Setting it removes all parameters of that name and inserts one in the
    /// place of the first, or at the end.
    package subscript(_ name: String) -> String? {
        get { pairs.last { $0.name == name }?.text }
        set {
            let index = pairs.firstIndex { $0.name == name } ?? pairs.count
            pairs.removeAll { $0.name == name }
            if let newValue { pairs.insert(Pair(name: name, value: newValue), at: min(index, pairs.count)) }
        }
    }

    /// Escaped, joined by `&`.
    package var text: String {
        var text: [UInt8] = []
        for pair in pairs { Form.append(pair.name, value: pair.value.span, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    private static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(text)
        return Form.lenientlyDecoded(bytes.span)
    }
}

extension RawRequest {
    /// The parameters of the query; none where there is no query.
    package var queryForm: RawForm {
        get { RawForm(reading: query ?? "") }
        set { target = newValue.pairs.isEmpty ? path : "\(path)?\(newValue.text)" }
    }

    /// The body's parameters; nil if its type is not a form's.
    package var bodyForm: RawForm? {
        get { hasType("application/x-www-form-urlencoded") ? RawForm(reading: bodyText) : nil }
        set {
            fields["Content-Type"] = newValue == nil ? nil : "application/x-www-form-urlencoded"
            body = Array((newValue?.text ?? "").utf8)
        }
    }

    /// The app's parameters: those of a form body if there is one, else those of the query.
    package var parameters: RawForm {
        get { body.isEmpty ? queryForm : bodyForm ?? queryForm }
        set { if bodyForm != nil, !body.isEmpty { bodyForm = newValue } else { queryForm = newValue } }
    }

    package var bodyText: String { String(decoding: body, as: UTF8.self) }

    package func hasType(_ type: String) -> Bool {
        fields["Content-Type"]?.lowercased().hasPrefix(type) ?? false
    }
}

/// The outermost members of a JSON object, in which a name may occur more than once.
package struct RawMembers: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package var name: String
        /// As JSON: `"shop"`, `7`.
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var members: [Member]

    package init(_ members: [Member]) { self.members = members }

    /// Nil if `body` is no JSON object.
    package init?(reading body: [UInt8]) {
        guard let document = try? JSONReader.read(body), let read = document.root.members else { return nil }
        members = read.map { Member(name: $0.name, value: document.text(of: $0.value)) }
    }

    package subscript(_ name: String) -> String? { members.last { $0.name == name }?.value }

    /// The same members with another value for that name; unchanged if no member has it.
    package func setting(_ name: String, to text: String) -> RawMembers {
        RawMembers(
            members.map { $0.name == name ? Member(name: name, value: JSONValue.string(text).text) : $0 })
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
    /// A member of the body's JSON object, as text; nil if there is no such member.
    package func member(_ name: String) -> String? {
        guard let document = try? JSONReader.read(body), let value = document.root[name] else { return nil }
        return value.string ?? document.text(of: value)
    }
}
