import CountersignWire

/// Form parameters as an attacker handles them: decoded, in their order, nothing refused.
package struct RawForm: Sendable, Equatable {
    package struct Pair: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(_ name: String, _ value: [UInt8]) {
            self.name = name
            self.value = value
        }

        package init(_ name: String, _ value: String) { self.init(name, Array(value.utf8)) }

        package var text: String { String(decoding: value, as: UTF8.self) }
    }

    package var pairs: [Pair]

    package init(_ pairs: [Pair]) { self.pairs = pairs }

    package init(reading text: some StringProtocol) {
        pairs = text.utf8.split(separator: UInt8(ascii: "&")).map { part in
            let parts = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return Pair(
                String(decoding: RawForm.decoded(parts.first ?? []), as: UTF8.self),
                RawForm.decoded(parts.count > 1 ? parts[1] : []))
        }
    }

    /// The last of that name; set, it takes the place of all of them, where the first one stood, or behind all others.
    package subscript(_ name: String) -> String? {
        get { pairs.last { $0.name == name }?.text }
        set {
            let index = pairs.firstIndex { $0.name == name } ?? pairs.count
            pairs.removeAll { $0.name == name }
            if let newValue { pairs.insert(Pair(name, newValue), at: min(index, pairs.count)) }
        }
    }

    /// Escaped, joined by `&`.
    package var text: String {
        var text: [UInt8] = []
        for pair in pairs { Form.append(pair.name, pair.value.span, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    private static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(text)
        return Form.forgivinglyDecoded(bytes.span)
    }
}

extension RawRequest {
    /// The parameters of the query; none where there is no query.
    package var queryForm: RawForm {
        get { RawForm(reading: query ?? "") }
        set { target = newValue.pairs.isEmpty ? path : "\(path)?\(newValue.text)" }
    }

    /// The body's parameters; nil where it says that it is something else.
    package var bodyForm: RawForm? {
        get { hasType("application/x-www-form-urlencoded") ? RawForm(reading: bodyText) : nil }
        set {
            fields["Content-Type"] = newValue == nil ? nil : "application/x-www-form-urlencoded"
            body = Array((newValue?.text ?? "").utf8)
        }
    }

    /// The parameters that the app means, wherever it writes them: those of a form body where there is one, else the query's.
    package var parameters: RawForm {
        get { body.isEmpty ? queryForm : bodyForm ?? queryForm }
        set { if bodyForm != nil, !body.isEmpty { bodyForm = newValue } else { queryForm = newValue } }
    }

    package var bodyText: String { String(decoding: body, as: UTF8.self) }

    package func hasType(_ type: String) -> Bool { fields["Content-Type"]?.lowercased().hasPrefix(type) ?? false }
}
