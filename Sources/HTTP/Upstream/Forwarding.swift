import CountersignWire

/// How a verified request goes on to the upstream.
package struct Forwarding: ~Copyable {
    /// Which of the request's fields go with it. Hop-by-hop fields and
    /// `Countersign-*` never do, whatever this says.
    package var fields: FieldMask
    /// Field lines of our own, each with its CRLF.
    package var added: [UInt8]
    /// The same, for the answer on its way back.
    package var addedToAnswer: [UInt8] = []
    /// For a body that streams: sees every byte, and decides before the last ones go.
    package var inspector: (any BodyInspector)?
    /// Sees the answer, and whether there can be one.
    package var observer: (any AnswerObserver)?
    /// Whose turn it takes where requests wait for a connection; nil for the client's address.
    package var caller: UpstreamCaller?

    package init(fields: FieldMask, added: [UInt8], inspector: (any BodyInspector)? = nil) {
        self.fields = fields
        self.added = added
        self.inspector = inspector
    }
}

/// Looks at a body on its way. Confined to the loop of its exchange.
package protocol BodyInspector: AnyObject {
    func inspect(_ bytes: Span<UInt8>)
    /// Called at the body's end, while its last bytes are still held back.
    func finish() throws(Refusal)
}

extension Forwarding {
    /// The fields of `request` that do go on: those chosen, less what ends at this hop and what only we may say.
    package func selected(of request: borrowing Request) -> FieldMask {
        let head = request.head.span
        var selected = fields.subtracting(request.endingHere)
        for index in request.fields.indices {
            let name = request.fields[index].name
            if HopByHop.isOne(name, of: head) || HopByHop.isOurs(name, of: head) { selected.remove(index) }
        }
        return selected
    }

    /// Writes the request's head for the upstream: the same method and the same target bytes.
    func writeHead(of request: borrowing Request, to output: Buffer) {
        let head = request.head.span
        func append(_ slice: Slice) {
            head.extracting(slice.range).withUnsafeBytes { _ = output.append($0) }
        }
        append(request.method)
        output.append(" ")
        append(request.target)
        output.append(" HTTP/1.1\r\n")
        FieldLines.copy(request.fields, where: selected(of: request), of: head, to: output)
        output.append(added)
        switch (request.isBodyWhole, request.framing) {
        case (true, .none) where request.body.isEmpty: break
        case (true, _): output.appendLength(request.body.count)
        case (false, .length(let length)): output.appendLength(length)
        case (false, .none): break
        case (false, .chunked): output.append("Transfer-Encoding: chunked\r\n")
        }
        output.append("\r\n")
    }
}

/// The fields that end here. Source: RFC 9110 §7.6.1.
enum HopByHop {
    static func isOne(_ name: Slice, of head: Span<UInt8>) -> Bool {
        func equals(_ text: StaticString) -> Bool { FieldLines.equals(head, name, text) }
        return switch name.count {
        case 2: equals("te")
        case 6: equals("expect")
        case 7: equals("trailer") || equals("upgrade")
        case 10: equals("connection") || equals("keep-alive")
        case 14: equals("content-length") || equals("http2-settings")
        case 16: equals("proxy-connection")
        case 17: equals("transfer-encoding")
        case 18: equals("proxy-authenticate")
        case 19: equals("proxy-authorization")
        default: false
        }
    }

    /// `Countersign-…`, and what some backends take for the same: they write `_` for whatever is no letter or digit. Only we
    /// say those.
    static func isOurs(_ name: Slice, of head: Span<UInt8>) -> Bool {
        let prefix = "countersign" as StaticString
        let length = prefix.utf8CodeUnitCount
        guard name.count >= length else { return false }
        guard FieldLines.equals(head, Slice(Int(name.start), Int(name.start) + length), prefix) else { return false }
        guard name.count > length else { return true }
        let next = head[Int(name.start) + length]
        return !ASCII.isLetter(next) && !ASCII.isDigit(next)
    }

    /// Members that the `Connection` fields of a head may have together. Each is compared with every field.
    static let mostMembers = 64

    /// The fields that `Connection` fields name. Both kinds of head hold at most 128
    /// fields.
    static func named(in fields: [Request.Field], of head: Span<UInt8>) throws(Refusal) -> FieldMask {
        var named = FieldMask()
        var count = 0
        for field in fields where FieldLines.equals(head, field.name, "connection") {
            var rest = field.value
            while let member = FieldLines.nextMember(of: &rest, in: head) {
                count += 1
                guard count <= mostMembers else {
                    throw Refusal(.malformed, "the Connection fields have more than \(mostMembers) members")
                }
                for index in fields.indices where FieldLines.equals(head, fields[index].name, member) {
                    named.insert(index)
                }
            }
        }
        return named
    }
}
