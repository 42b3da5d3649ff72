/// A request under construction, which a client signs and then sends.
package struct Draft: Sendable {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: [UInt8]

        package init(name: String, value: String) {
            self.name = name
            self.value = Array(value.utf8)
        }

        /// Compared without case.
        package func isNamed(_ other: String) -> Bool {
            name.utf8.elementsEqual(other.utf8) { ASCII.lowercased($0) == ASCII.lowercased($1) }
        }
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
            var copy = Field(name: request.text(field.name), value: "")
            copy.value = Array(request.head[field.value.range])
            fields.append(copy)
        }
        body = request.body
    }

    /// Replaces every field of that name, compared without case.
    package mutating func setField(_ name: String, to value: String) {
        fields.removeAll { $0.isNamed(name) }
        fields.append(Field(name: name, value: value))
    }

    /// The same request as a receiver reads it: what the verifier will see is what gets signed.
    package func request() -> Request {
        var request = Request()
        request.transport = transport
        request.head.reserveCapacity(1_024)
        request.fields.reserveCapacity(fields.count + 2)
        func add(_ bytes: some Sequence<UInt8>) -> ByteRange {
            let start = request.head.count
            request.head.append(contentsOf: bytes)
            return ByteRange(from: start, to: request.head.count)
        }
        func add(name: String, value: [UInt8]) {
            let name = add(name.utf8.lazy.map(ASCII.lowercased))
            _ = add(": ".utf8)
            let value = add(value)
            _ = add("\r\n".utf8)
            request.fields.append(Request.Field(name: name, value: value))
        }
        request.method = add(method.utf8)
        _ = add(" ".utf8)
        request.target = add(target)
        _ = add(" HTTP/1.1\r\n".utf8)
        request.splitTarget()
        add(name: "host", value: Array(authority.utf8))
        request.authority = request.fields[0].value
        for field in fields { add(name: field.name, value: field.value) }
        let framing = framing
        if case .length(let count) = framing { add(name: "content-length", value: Array(String(count).utf8)) }
        _ = add("\r\n".utf8)
        request.identifyFields()
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
