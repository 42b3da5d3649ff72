import CountersignWire

/// Changes to a request's head that leave it as another client could have sent it, so that every reader after the
/// parser (gate, log, forwarding) needs no rule of its own for them. All are rare; none is on the usual path.
extension Request {
    /// Takes out the lines of all fields whose names hold an underscore.
    mutating func removeFieldsWithUnderscores(limit: Int) throws(Refusal) {
        guard let first = fields.first else { return }
        var lines = Array(head[..<Int(first.name.start)])
        for (index, field) in fields.enumerated() where !head[field.name.range].contains(Octet.underscore) {
            let end = index + 1 < fields.count ? Int(fields[index + 1].name.start) : head.count - 2
            lines += head[Int(field.name.start)..<end]
        }
        let start = Int(first.name.start)
        lines += [Octet.carriageReturn, Octet.lineFeed]
        head = lines
        fields.removeAll(keepingCapacity: true)
        try FieldLines.parse(lines.span, from: start, to: lines.count, limit: limit, into: &fields)
    }

    /// Adds the `Host` field that HTTP/1.0 does not ask for, and that HTTP/1.1 to the backend does.
    mutating func addHost(_ authority: some Sequence<UInt8>) {
        let start = head.count - 2
        head.removeLast(2)
        head += "host: ".utf8
        let valueStart = head.count
        head += authority
        fields.append(Field(name: Slice(start, start + 4), value: Slice(valueStart, head.count)))
        head += "\r\n\r\n".utf8
    }

    /// Empties the request and keeps its buffers, so that the next one on the connection allocates nothing.
    package mutating func reset() {
        head.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        if !body.isEmpty { body = [] }
        method = .empty
        target = .empty
        absoluteAuthority = .empty
        path = .empty
        query = nil
        authority = .empty
        framing = .none
        endingHere = FieldMask()
        isBodyWhole = true
        minorVersion = 1
    }
}
