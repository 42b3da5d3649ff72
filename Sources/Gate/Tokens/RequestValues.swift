import CountersignWire

/// The values of a request without a signature at the places that an app's policy names. A name must not
/// occur twice, because a backend might read the other value. An empty value counts as none, because clients
/// send empty values before the user signs in.
struct RequestValues {
    /// The most parameters of a query or a form; a request with more is refused.
    private static let mostParameters = 1_024

    private let request: Request

    init(_ request: Request) { self.request = request }

    /// Whether the body is a form that has not arrived yet.

    /// The value at `place`; nil if there is none or if it is in a body that was not read.
    func value(at place: ValueLocation) throws(Refusal) -> [UInt8]? {
        switch place {
        case .bearer: return try bearer()?.token
        case .form(let name):
            guard request.hasFormType, request.isBodyWhole else { return nil }
            return try parameter(name, in: request.body.span, of: "the form")
        case .query(let name):
            guard let query = request.query else { return nil }
            return try parameter(name, in: request.head.span.extracting(query.range), of: "the query")
        case .cookie(let name): return try Cookies(in: request).value(of: name)
        case .header(let name): return try field(name)?.value
        case .userAgent(let pattern):
            guard let slice = request.value(of: .userAgent) else { return nil }
            let text = request.head.span.extracting(slice.range)
            guard let found = pattern.capture(in: text) else { return nil }
            return text.extracting(found).withUnsafeBufferPointer { Array($0) }
        }
    }

    /// The value at the first of the places that has one.
    func first(of places: [ValueLocation]) throws(Refusal) -> [UInt8]? {
        for place in places {
            if let value = try value(at: place) { return value }
        }
        return nil
    }

    /// The token after `Bearer` in the Authorization field, with the index of that field. Source: RFC 6750
    /// §2.1.
    func bearer() throws(Refusal) -> (token: [UInt8], field: Int)? {
        guard request.names.contains(.authorization) else { return nil }
        var found: (token: [UInt8], field: Int)?
        for index in request.fields.indices where request.fields[index].known == .authorization {
            let value = request.head.span.extracting(request.fields[index].value.range)
            guard value.count > 7, value.extracting(0..<7).matchesWithoutCase("bearer ") else { continue }
            guard found == nil else { throw Refusal(.malformed, detail: "several bearer tokens") }
            var start = 7
            while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
            if start < value.count {
                found = (value.extracting(start...).withUnsafeBufferPointer { Array($0) }, index)
            }
        }
        return found
    }

    /// The field with that name, in lower case.
    func field(_ name: [UInt8]) throws(Refusal) -> (value: [UInt8], index: Int)? {
        var found: (value: [UInt8], index: Int)?
        for index in request.fields.indices
        where request.head.span.extracting(request.fields[index].name.range).matches(name.span) {
            guard found == nil else {
                throw Refusal(.malformed, detail: "\(name.span.text) comes more than once")
            }
            found = (Array(request.head[request.fields[index].value.range]), index)
        }
        return found.flatMap { $0.value.isEmpty ? nil : $0 }
    }

    /// The parameter of that name, decoded leniently as PHP and similar backends do.
    private func parameter(
        _ name: [UInt8], in text: Span<UInt8>, of what: StaticString
    ) throws(Refusal) -> [UInt8]? {
        var found: [UInt8]?
        var start = 0
        var count = 0
        while start < text.count {
            count += 1
            guard count <= RequestValues.mostParameters else {
                throw Refusal(
                    .malformed, detail: "\(what) has more than \(RequestValues.mostParameters) parameters")
            }
            let end = text.firstIndex(of: UInt8(ascii: "&"), from: start) ?? text.count
            let pair = text.extracting(start..<end)
            start = end + 1
            let nameEnd = pair.firstIndex(of: UInt8(ascii: "="), from: 0) ?? pair.count
            guard RequestValues.isNamed(name, raw: pair.extracting(0..<nameEnd)) else { continue }
            guard found == nil else {
                throw Refusal(.malformed, detail: "\(name.span.text) comes more than once in \(what)")
            }
            found = nameEnd < pair.count ? Form.lenientlyDecoded(pair.extracting((nameEnd + 1)...)) : []
        }
        return found.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Most names are rejected by their length: no encoded name is shorter than the name.
    private static func isNamed(_ name: [UInt8], raw: Span<UInt8>) -> Bool {
        if raw.matches(name.span) { return true }
        guard raw.count > name.count, raw.count <= 3 * name.count else { return false }
        return Form.lenientlyDecoded(raw).span.matches(name.span)
    }
}
