import CCurl

/// The header fields of a request as libcurl takes them: a list whose nodes and memory stay for the
/// handle's next request. libcurl reads the list while the transfer runs and changes nothing in it.
///
/// libcurl compares each entry of the list with the names of two dozen fields that it might make itself.
/// So `Host` is one entry, and all other fields are one more, with line breaks between them, which libcurl
/// sends as they are. A value with a line break of its own never comes here: ``OutgoingRequest/flaw``
/// refuses it.
final class HeaderLines {
    /// `Host`, the other fields, and the entries that remove libcurl's own fields.
    private let nodes: UnsafeMutablePointer<curl_slist>
    private var text: UnsafeMutableBufferPointer<UInt8>
    private var used = 0

    /// Removes libcurl's own, unsigned fields: its notation for that is a name without a value. `Expect`
    /// would wait for an unnecessary interim response. A field of the request that has such a name is sent
    /// all the same, since libcurl sends what these entries say, which is nothing, besides it.
    private static let removed: [StaticString] = ["Accept:", "Content-Type:", "Expect:", "User-Agent:"]

    init() {
        let count = HeaderLines.removed.count + 2
        nodes = .allocate(capacity: count)
        nodes.initialize(repeating: curl_slist(), count: count)
        text = .allocate(capacity: 1_024)
        for (index, name) in HeaderLines.removed.enumerated() {
            let node = nodes + index + 2
            // libcurl does not write to it.
            node.pointee.data = UnsafeMutablePointer(mutating: name.cString)
            node.pointee.next = index + 1 < HeaderLines.removed.count ? node + 1 : nil
        }
    }

    deinit {
        nodes.deallocate()
        text.deallocate()
    }

    /// The list; it stays at its place.
    var list: UnsafeMutablePointer<curl_slist> { nodes }

    /// Replaces the fields by those of `request`.
    func write(_ request: OutgoingRequest) {
        used = 0
        append("Host: ")
        append(request.authority)
        append(0)
        let others = used
        for field in request.fields {
            if used > others { append("\r\n") }
            append(field.name)
            append(":")
            if !field.value.isEmpty {
                append(" ")
                field.value.withUnsafeBufferPointer { append($0) }
            }
        }
        // libcurl's notation for a field with an empty value, where it is the only one.
        if let only = request.fields.first, request.fields.count == 1, only.value.isEmpty {
            used -= 1
            append(";")
        }
        append(0)
        link(others: request.fields.isEmpty ? nil : others)
    }

    /// Overwrites the fields: there may be a bearer token among them.
    func erase() {
        text[..<used].update(repeating: 0)
        used = 0
    }

    private func link(others: Int?) {
        guard let start = text.baseAddress else { return }
        func pointer(_ offset: Int) -> UnsafeMutablePointer<CChar> {
            UnsafeMutableRawPointer(start + offset).assumingMemoryBound(to: CChar.self)
        }
        nodes[0].data = pointer(0)
        nodes[0].next = nodes + (others == nil ? 2 : 1)
        nodes[1].data = others.map(pointer)
        nodes[1].next = nodes + 2
    }

    private func append(_ byte: UInt8) {
        reserve(1)
        text[used] = byte
        used += 1
    }

    private func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @_disfavoredOverload
    private func append(_ text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    private func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        reserve(bytes.count)
        guard let source = bytes.baseAddress, let start = text.baseAddress else { return }
        (start + used).update(from: source, count: bytes.count)
        used += bytes.count
    }

    private func reserve(_ more: Int) {
        guard text.count - used < more else { return }
        let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(text.count * 2, used + more))
        _ = larger.update(fromContentsOf: text[..<used])
        text.deallocate()
        text = larger
    }
}

extension StaticString {
    /// The text with a zero at its end, as every literal has one.
    fileprivate var cString: UnsafePointer<CChar> {
        UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
