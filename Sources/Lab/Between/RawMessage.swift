import CountersignWire

/// An HTTP message as an attacker handles it: nothing is checked, everything may be changed.
package struct RawRequest: Sendable, Equatable {
    package var method: String
    /// As it stands in the request line: path and query, not decoded.
    package var target: String
    package var fields: RawFields
    package var body: [UInt8]

    package init(_ method: String, _ target: String, fields: RawFields = RawFields(), body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
    }

    /// The target up to the first `?`.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The target behind the first `?`; nil where there is none.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// With a `Content-Length` that is right, whatever stood there.
    package var bytes: [UInt8] {
        var fields = fields
        fields.remove("transfer-encoding")
        if body.isEmpty { fields.remove("content-length") } else { fields["content-length"] = String(body.count) }
        return Array("\(method) \(target) HTTP/1.1\r\n\(fields.text)\r\n".utf8) + body
    }

    /// For people: the bytes as text.
    package var shown: String { String(decoding: bytes, as: UTF8.self) }
}

/// What came back.
package struct RawResponse: Sendable, Equatable {
    package var status: Int
    package var fields: RawFields
    package var body: [UInt8]

    package init(_ status: Int, fields: RawFields = RawFields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// With a `Content-Length` that is right.
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

/// Fields in their order. Names are found whatever their case.
package struct RawFields: Sendable, Equatable, ExpressibleByArrayLiteral {
    package var lines: [Line]

    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(_ lines: [Line] = []) { self.lines = lines }

    package init(arrayLiteral lines: (String, String)...) {
        self.lines = lines.map { Line($0.0, $0.1) }
    }

    /// The first of the name; set, it takes the place of all of them.
    package subscript(_ name: String) -> String? {
        get { lines.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            let index = lines.firstIndex { $0.name.lowercased() == name.lowercased() }
            remove(name)
            guard let newValue else { return }
            lines.insert(Line(name, newValue), at: min(index ?? lines.count, lines.count))
        }
    }

    package mutating func remove(_ name: String) { lines.removeAll { $0.name.lowercased() == name.lowercased() } }

    fileprivate var text: String { lines.map { "\($0.name): \($0.value)\r\n" }.joined() }
}

/// A request and its answer, as seen on the way.
package struct RawExchange: Sendable {
    package var request: RawRequest
    /// Nil where none was seen.
    package var response: RawResponse?

    package init(request: RawRequest, response: RawResponse?) {
        self.request = request
        self.response = response
    }
}
