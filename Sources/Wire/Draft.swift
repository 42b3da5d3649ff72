/// A request under construction, which a client signs and then sends.
package struct Draft: Sendable {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(name: String, value: String) { self.init(name: name, bytes: Array(value.utf8)) }

        /// A field whose value need not be UTF-8.
        package init(name: String, bytes: [UInt8]) {
            self.name = name
            value = bytes
        }

        /// Compared without case.
        package func isNamed(_ other: String) -> Bool { ASCII.isSame(name, withoutCase: other) }
    }

    package var method: String
    /// Raw request target, origin form.
    package var target: [UInt8]
    /// The `Host` field's value.
    package var authority: String
    package var transport: Request.Transport
    /// Without `Host` and `Content-Length`, which `authority` and the body stand for.
    package var fields: [Field] = []
    package var body: [UInt8] = []
    /// The body's description, in place of `body` if that is not in memory.
    package var streamed: StreamedBody?

    /// What is known in advance of a body that is sent while it is read.
    package struct StreamedBody: Sendable, Equatable {
        /// Bytes; nil where it goes out in chunks.
        package let length: Int?
        package let digest: Digest

        /// Of all of it.
        package enum Digest: Sendable, Equatable {
            /// 32 bytes.
            case sha256([UInt8])
            /// 16 bytes: for schemes that sign that.
            case md5([UInt8])
        }

        /// `digest` is its SHA-256.
        package init(length: Int?, digest: [UInt8]) { self.init(length: length, digest: .sha256(digest)) }

        package init(length: Int?, digest: Digest) {
            self.length = length
            self.digest = digest
        }
    }

    package init(method: String, target: [UInt8], authority: String, transport: Request.Transport = .tls) {
        self.method = method
        self.target = target
        self.authority = authority
        self.transport = transport
    }

    /// A received request as a draft that can be changed and signed. `authority` and the body replace `Host`
    /// and `Content-Length`; a `Content-Length` stays if the body is empty, since clients may sign it.
    package init(_ request: Request) {
        self.init(
            method: request.text(request.method), target: Array(request.head[request.target.range]),
            authority: request.text(request.authority), transport: request.transport)
        for field in request.fields where !request.matches(field.name, text: "host") {
            if request.matches(field.name, text: "content-length"), !request.body.isEmpty { continue }
            fields.append(
                Field(name: request.text(field.name), bytes: Array(request.head[field.value.range])))
        }
        body = request.body
    }

    /// Replaces every field of that name, compared without case.
    package mutating func setField(_ name: String, to value: String) {
        setField(name, bytes: Array(value.utf8))
    }

    /// The same with a value that need not be UTF-8.
    package mutating func setField(_ name: String, bytes value: [UInt8]) {
        fields.removeAll { $0.isNamed(name) }
        fields.append(Field(name: name, bytes: value))
    }

    /// The same request as a receiver reads it: what the verifier will see is what gets signed.
    package func request() -> Request {
        var request = Request()
        request.transport = transport
        var head = HeadWriter(fieldCount: fields.count + 2)
        request.method = head.add(method)
        head.bytes.append(" ")
        request.target = head.add(target)
        head.bytes.append(" HTTP/1.1\r\n")
        head.addField("host", value: authority)
        for field in fields { head.addField(field.name, value: field.value) }
        let framing = framing
        if case .length(let count) = framing { head.addField("content-length", value: String(count)) }
        head.bytes.append("\r\n")
        request.take(head)
        request.splitTarget()
        request.authority = request.fields[0].value
        request.body = body
        request.framing = framing
        return request
    }

    /// The request as it goes over the wire; a body that is not in memory is left out.
    package var wire: [UInt8] {
        var bytes = Array("\(method) ".utf8) + target + Array(" HTTP/1.1\r\nHost: \(authority)\r\n".utf8)
        for field in fields { bytes += Array("\(field.name): ".utf8) + field.value + [0x0D, 0x0A] }
        if !body.isEmpty { bytes += Array("Content-Length: \(body.count)\r\n".utf8) }
        return bytes + [0x0D, 0x0A] + body
    }

    private var framing: Request.Framing {
        if let streamed { return streamed.length.map { .length($0) } ?? .chunked }
        return body.isEmpty ? .none : .length(body.count)
    }
}

/// Writes the head of a message as a parser of received heads would store it: names in lower case, and where
/// each part is.
struct HeadWriter: ~Copyable {
    fileprivate(set) var bytes = ByteBuffer(capacity: 1_024)
    fileprivate var fields: [Request.Field] = []

    init(fieldCount: Int) { fields.reserveCapacity(fieldCount) }

    /// Adds those bytes, and answers where they are.
    mutating func add(_ part: [UInt8]) -> ByteRange {
        let start = bytes.count
        bytes.append(part.span)
        return ByteRange(from: start, to: bytes.count)
    }

    mutating func add(_ part: String) -> ByteRange {
        let start = bytes.count
        bytes.append(part)
        return ByteRange(from: start, to: bytes.count)
    }

    mutating func addField(_ name: String, value: [UInt8]) {
        let name = addName(name)
        fields.append(Request.Field(name: name, value: add(value)))
        bytes.append("\r\n")
    }

    mutating func addField(_ name: String, value: String) {
        let name = addName(name)
        fields.append(Request.Field(name: name, value: add(value)))
        bytes.append("\r\n")
    }

    private mutating func addName(_ name: String) -> ByteRange {
        let start = bytes.count
        bytes.append(lowercasing: name)
        let end = bytes.count
        bytes.append(": ")
        return ByteRange(from: start, to: end)
    }
}

extension Request {
    /// Replaces head and fields by those that were written.
    mutating func take(_ written: borrowing HeadWriter) {
        head = written.bytes.array
        fields = written.fields
        identifyFields()
    }
}

extension Request {
    /// Sets `path` and `query` from `target`: the query is what follows the first `?`.
    package mutating func splitTarget() {
        let start = Int(target.start)
        let end = Int(target.end)
        var mark = start
        while mark < end, head[mark] != UInt8(ascii: "?") { mark += 1 }
        path = ByteRange(from: start, to: mark)
        query = mark < end ? ByteRange(from: mark + 1, to: end) : nil
    }
}
