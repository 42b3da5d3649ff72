/// An answer as a signature sees it. Source: RFC 9421 §2.2.9.
package struct Response: Sendable {
    package var status: Int
    /// Its fields and body, kept as a request's are so that the same readers read them; what only requests have is empty.
    package var message: Request

    package init(status: Int, fields: [Draft.Field], body: [UInt8]) {
        self.status = status
        var message = Request()
        for field in fields {
            message.add(Array(field.name.lowercased().utf8), field.value)
        }
        message.tellFieldsApart()
        message.body = body
        self.message = message
    }
}

extension Request {
    fileprivate mutating func add(_ name: [UInt8], _ value: [UInt8]) {
        let start = head.count
        head += name
        let colon = head.count
        head += Array(": ".utf8) + value
        fields.append(Field(name: Slice(start, colon), value: Slice(colon + 2, head.count)))
        head += Array("\r\n".utf8)
    }
}
