import CountersignWire

/// The one signature of a request that is meant for us, out of all that its Signature-Input names.
/// Source: RFC 9421 §4.1.
struct SignatureInput: BitwiseCopyable {
    /// In `Request.head`, as are the strings below; strings without their quotes.
    var label = Slice.empty
    /// In `Workspace.components`.
    var components = Slice.empty
    /// The value of `@signature-params`, in `Workspace.canonical`.
    var parameters = Slice.empty
    var created: Int64?
    var expires: Int64?
    var nonce: Slice?
    var keyID: Slice?
    var algorithm: Slice?
    var tag: Slice?

    /// As many components as one signature may name, and as many signatures as a request may carry.
    static let most = (components: 64, signatures: 8)

    /// Reads every signature and keeps the one with our tag; without one, the only one that has no tag.
    static func read(_ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        workspace.components.removeAll(keepingCapacity: true)
        workspace.canonical.clear()
        var ours: SignatureInput?
        var untagged: SignatureInput?
        var count = 0
        for field in request.fields where request.matches(field.name, "signature-input") {
            var reader = StructuredField(request.head.span.extracting(field.value.range))
            do {
                while let label = try reader.nextMember() {
                    count += 1
                    guard count <= most.signatures else { throw Refusal(.malformed, "more than 8 signatures") }
                    var input = try member(&reader, at: Int(field.value.start), &workspace)
                    input.label = label.moved(by: field.value.start)
                    switch input.tag {
                    case .some(let tag) where request.matches(tag, "countersign"):
                        guard ours == nil else { throw Refusal(.malformed, "two signatures with tag=\"countersign\"") }
                        ours = input
                    case .some: continue
                    case .none:
                        // Two without a tag: remembered as none, and as a reason to refuse.
                        if untagged != nil { untagged?.label = .empty } else { untagged = input }
                    }
                }
            } catch let problem as StructuredField.Problem {
                throw Refusal(problem, in: "Signature-Input")
            } catch let refusal as Refusal {
                throw refusal
            } catch {
                throw Refusal(.malformed, "Signature-Input")
            }
        }
        guard let chosen = ours ?? untagged else {
            throw Refusal(.unsigned, "no signature in Signature-Input is tagged \"countersign\"")
        }
        guard !chosen.label.isEmpty else {
            throw Refusal(.malformed, "several signatures, none with tag=\"countersign\": which one is meant?")
        }
        workspace.signature = chosen
    }

    /// An inner list of component identifiers and its parameters. `base` is where the reader's text begins in the head.
    private static func member(
        _ reader: inout StructuredField, at base: Int, _ workspace: inout Workspace
    ) throws(StructuredField.Problem) -> SignatureInput {
        var input = SignatureInput()
        let firstComponent = workspace.components.count
        let start = workspace.canonical.count
        guard reader.takeEquals(), reader.openList() else { throw reader.problem("\"=(\": a list of components") }
        workspace.canonical.append(UInt8(ascii: "("))
        var isFirst = true
        while try reader.nextInList(first: &isFirst) {
            if workspace.components.count > firstComponent { workspace.canonical.append(0x20) }
            try component(&reader, &workspace)
            guard workspace.components.count - firstComponent <= most.components else {
                throw reader.problem("at most 64 components")
            }
        }
        workspace.canonical.append(UInt8(ascii: ")"))
        while let key = try reader.nextParameter() {
            let value = try reader.parameterValue()
            try input.keep(key, value, of: reader, at: base)
            try workspace.canonical.append(parameter: key, value, of: reader)
        }
        input.components = Slice(firstComponent, workspace.components.count)
        input.parameters = Slice(start, workspace.canonical.count)
        return input
    }

    private static func component(
        _ reader: inout StructuredField, _ workspace: inout Workspace
    ) throws(StructuredField.Problem) {
        let content = try reader.string()
        let start = workspace.canonical.count
        workspace.canonical.append(UInt8(ascii: "\""))
        workspace.canonical.append(reader.bytes.extracting(content.range))
        workspace.canonical.append(UInt8(ascii: "\""))
        let name = Slice(start + 1, workspace.canonical.count - 1)
        var isPlain = true
        while let key = try reader.nextParameter() {
            isPlain = false
            let value = try reader.parameterValue()
            try workspace.canonical.append(parameter: key, value, of: reader)
        }
        let identifier = Slice(start, workspace.canonical.count)
        var component = Component(identifier: identifier, name: name, workspace.canonical.span)
        if !isPlain { component.kind = .unsupported }
        workspace.components.append(component)
    }

    /// Source: RFC 9421 §2.3.
    private mutating func keep(
        _ key: Slice, _ value: StructuredField.BareItem, of reader: borrowing StructuredField, at base: Int
    ) throws(StructuredField.Problem) {
        let name = reader.bytes.extracting(key.range)
        switch value {
        case .integer(let seconds):
            if name.matches("created") { return try set(&created, seconds, reader) }
            if name.matches("expires") { return try set(&expires, seconds, reader) }
        case .string(let text):
            let text = text.moved(by: UInt32(truncatingIfNeeded: base))
            if name.matches("nonce") { return try set(&nonce, text, reader) }
            if name.matches("keyid") { return try set(&keyID, text, reader) }
            if name.matches("alg") { return try set(&algorithm, text, reader) }
            if name.matches("tag") { return try set(&tag, text, reader) }
        default: break
        }
        // One of ours with a value of another type must not pass as one that nobody knows.
        for known: StaticString in ["created", "expires", "nonce", "keyid", "alg", "tag"] where name.matches(known) {
            throw reader.problem("\(known): another type of value")
        }
    }

    private func set<Value>(
        _ place: inout Value?, _ value: Value, _ reader: borrowing StructuredField
    ) throws(StructuredField.Problem) {
        guard place == nil else { throw reader.problem("each parameter once") }
        place = value
    }
}

extension ByteBuffer {
    /// Writes a parameter as RFC 9651 §4.1.1.2 serialises it.
    fileprivate mutating func append(
        parameter key: Slice, _ value: StructuredField.BareItem, of reader: borrowing StructuredField
    ) throws(StructuredField.Problem) {
        append(UInt8(ascii: ";"))
        append(reader.bytes.extracting(key.range))
        switch value {
        case .boolean(true): return
        case .boolean(false): append("=?0")
        case .integer(let number):
            append(UInt8(ascii: "="))
            append(decimal: number)
        case .string(let text):
            append("=\"")
            append(reader.bytes.extracting(text.range))
            append(UInt8(ascii: "\""))
        case .token(let text):
            append(UInt8(ascii: "="))
            append(reader.bytes.extracting(text.range))
        case .bytes, .decimal, .date, .displayString:
            // Each has more than one spelling, and no registered parameter uses them.
            throw reader.problem("an integer, a string, a token or a boolean")
        }
    }
}

extension Slice {
    func moved(by offset: UInt32) -> Slice { Slice(Int(start) + Int(offset), Int(end) + Int(offset)) }
}

extension Refusal {
    init(_ problem: StructuredField.Problem, in field: String) {
        self.init(.malformed, "\(field): expected \(problem.expected) at byte \(problem.at) of its value")
    }
}
