import CountersignWire

/// An HTTP message without any checks, every part of which can be changed.
package struct RawRequest: Sendable, Equatable {
    package var method: String
    /// The target of the request line: path and query, not decoded.
    package var target: String
    package var fields: RawFields
    package var body: [UInt8]

    package init(method: String, target: String, fields: RawFields = RawFields(), body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
    }

    /// The target up to the first `?`.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The target after the first `?`; nil if the target has no `?`.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The bytes with the correct `Content-Length`, whatever the fields contain.
    package var bytes: [UInt8] {
        var fields = fields
        fields.remove("transfer-encoding")
        if body.isEmpty {
            fields.remove("content-length")
        } else {
            fields["content-length"] = String(body.count)
        }
        return Array("\(method) \(target) HTTP/1.1\r\n\(fields.text)\r\n".utf8) + body
    }

    /// For people: the bytes as text.
    package var shown: String { String(decoding: bytes, as: UTF8.self) }
}

/// A response without any checks.
package struct RawResponse: Sendable, Equatable {
    package var status: Int
    package var fields: RawFields
    package var body: [UInt8]

    package init(_ status: Int, fields: RawFields = RawFields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// The bytes with the correct `Content-Length`.
    package var bytes: [UInt8] {
        var fields = fields
        fields.remove("transfer-encoding")
        fields["content-length"] = String(body.count)
        return Array("HTTP/1.1 \(status) Said\r\n\(fields.text)\r\n".utf8) + body
    }

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// For people: the bytes as text.
    package var shown: String { String(decoding: bytes, as: UTF8.self) }
}

/// Fields in their order. Names are compared without case.
package struct RawFields: Sendable, Equatable, ExpressibleByArrayLiteral {
    package var lines: [Line]

    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(_ lines: [Line] = []) { self.lines = lines }

    package init(arrayLiteral lines: (String, String)...) {
        self.lines = lines.map { Line(name: $0.0, value: $0.1) }
    }

    /// The first value of the name. Setting it replaces all values of the name.
    package subscript(_ name: String) -> String? {
        get { lines.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            let index = lines.firstIndex { $0.name.lowercased() == name.lowercased() }
            remove(name)
            guard let newValue else { return }
            lines.insert(Line(name: name, value: newValue), at: min(index ?? lines.count, lines.count))
        }
    }

    package mutating func remove(_ name: String) {
        lines.removeAll { $0.name.lowercased() == name.lowercased() }
    }

    fileprivate var text: String { lines.map { "\($0.name): \($0.value)\r\n" }.joined() }
}

/// A request and its response, as recorded.
package struct RawExchange: Sendable {
    package var request: RawRequest
    /// Nil where no response was recorded.
    package var response: RawResponse?

    package init(request: RawRequest, response: RawResponse?) {
        self.request = request
        self.response = response
    }
}
