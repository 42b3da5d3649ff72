import CountersignWire

/// Parses HTTP/1.1 messages of a stream leniently, so that the lab sees as much as possible. Messages of more
/// than 8 MiB are not read. Source: RFC 9112 §6, §7.1.
package struct MessageReader {
    private let more: () -> RawConnection.ReadResult
    private var buffer: [UInt8] = []
    /// Where the next message starts in `buffer`.
    private var place = 0
    private static let limit = 8 << 20

    /// Reads from a connection.
    package init(_ link: RawConnection) { more = { link.read() } }

    /// Reads from recorded bytes.
    package init(_ bytes: [UInt8]) {
        buffer = bytes
        more = { .end("recorded no further") }
    }

    /// A message and its bytes.
    package struct ParsedMessage<Message: Sendable>: Sendable {
        package var message: Message
        package var bytes: [UInt8]
    }

    /// The next request. `onContinue` is called where the client waits for `100 Continue` before it sends the
    /// body.
    package mutating func request(onContinue: () -> Void = {}) throws(NetworkError) -> ParsedMessage<
        RawRequest
    > {
        let head = try head()
        let words = head.first.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3 else { throw .unreadable("a request line of \(words.count) words") }
        if head.fields["expect"]?.lowercased() == "100-continue" { onContinue() }
        let body: [UInt8]
        if isChunked(head.fields) {
            body = try chunks()
        } else {
            body = try take(length(head.fields) ?? 0)
        }
        return ParsedMessage(
            message: RawRequest(
                method: String(words[0]), target: String(words[1]), fields: head.fields, body: body),
            bytes: passed())
    }

    /// The next final response, to a request with that method.
    package mutating func response(to method: String) throws(NetworkError) -> ParsedMessage<RawResponse> {
        while true {
            let head = try head()
            let words = head.first.split(separator: " ", maxSplits: 2)
            guard words.count >= 2, words[0].hasPrefix("HTTP/"), let status = Int(words[1]) else {
                throw .unreadable("a status line that is none: \(head.first.prefix(60))")
            }
            if status < 200, status != 101 { continue }
            let body: [UInt8]
            if method == "HEAD" || status == 101 || status == 204 || status == 304 {
                body = []
            } else if isChunked(head.fields) {
                body = try chunks()
            } else if let length = length(head.fields) {
                body = try take(length)
            } else {
                body = try rest()
            }
            return ParsedMessage(
                message: RawResponse(status, fields: head.fields, body: body), bytes: passed())
        }
    }

    /// The bytes after the last complete message.
    package var remainingBytes: [UInt8] { buffer }

    // MARK: Parts

    private mutating func passed() -> [UInt8] {
        defer {
            buffer.removeFirst(place)
            place = 0
        }
        return Array(buffer[..<place])
    }

    private mutating func fill() throws(NetworkError) {
        guard buffer.count < Self.limit else { throw .unreadable("more than 8 MiB") }
        switch more() {
        case .bytes(let bytes): buffer += bytes
        case .end(let reason): throw .cut(reason)
        }
    }

    private mutating func head() throws(NetworkError) -> (first: String, fields: RawFields) {
        var first = try line()
        // Ignores empty lines before a message. Source: RFC 9112 §2.2.
        while first.isEmpty { first = try line() }
        var fields = RawFields()
        while true {
            let line = try line()
            guard !line.isEmpty else { return (first, fields) }
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            fields.lines.append(
                .init(name: String(parts[0]), value: parts.count == 2 ? trimmed(parts[1]) : ""))
        }
    }

    /// The next line without its end, which may be a single line feed.
    mutating func line() throws(NetworkError) -> String {
        var looked = place
        while true {
            if let end = buffer[looked...].firstIndex(of: 0x0A) {
                defer { place = end + 1 }
                let hasReturn = end > place && buffer[end - 1] == 0x0D
                return String(decoding: buffer[place..<(hasReturn ? end - 1 : end)], as: UTF8.self)
            }
            looked = buffer.count
            try fill()
        }
    }

    private mutating func take(_ count: Int) throws(NetworkError) -> [UInt8] {
        guard count <= Self.limit else { throw .unreadable("more than 8 MiB") }
        while buffer.count - place < count { try fill() }
        defer { place += count }
        return Array(buffer[place..<(place + count)])
    }

    private mutating func chunks() throws(NetworkError) -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = try line()
            guard let count = Int(trimmed(line.prefix { $0 != ";" }), radix: 16), count >= 0 else {
                throw .unreadable("a chunk of '\(line.prefix(20))' bytes")
            }
            if count == 0 { break }
            body += try take(count)
            _ = try self.line()
        }
        while try !line().isEmpty {}
        return body
    }

    private mutating func rest() throws(NetworkError) -> [UInt8] {
        while true {
            guard buffer.count < Self.limit else { throw .unreadable("more than 8 MiB") }
            guard case .bytes(let bytes) = more() else { break }
            buffer += bytes
        }
        return try take(buffer.count - place)
    }

    private func isChunked(_ fields: RawFields) -> Bool {
        fields["transfer-encoding"]?.lowercased().contains("chunked") ?? false
    }

    private func length(_ fields: RawFields) -> Int? {
        fields["content-length"].flatMap { Int(trimmed($0[...])) }.map { max(0, $0) }
    }

    private func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return String(text)
    }
}
