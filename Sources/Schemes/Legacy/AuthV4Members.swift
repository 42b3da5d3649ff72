import CountersignWire

/// The members of a JSON body as auth-v4 signs them: sorted by name in lower case, all values as text.
enum AuthV4Members {
    /// Reads an object, or nothing. Leaves names in lower case and values as they are signed in `workspace`,
    /// sorted.
    static func read(_ body: Span<UInt8>, into workspace: inout Workspace) throws(Refusal) {
        workspace.parameters.removeAll(keepingCapacity: true)
        workspace.decoded.clear()
        guard body.count > 0 else { return }
        do throws(ParseError) {
            var members = JSONMembers()
            while let member = try members.next(in: body) {
                guard workspace.parameters.count < FormParameters.most else {
                    throw ParseError(
                        offset: Int(member.name.start), reason: "more than \(FormParameters.most) members")
                }
                let name = try appendName(member.name, of: body, to: &workspace.decoded)
                let value = try appendValue(member, of: body, to: &workspace.decoded)
                var parameter = FormParameter(name: name, value: value, encoding: .plain)
                parameter.prefix = FormParameter.prefix(of: workspace.decoded.span.extracting(name.range))
                workspace.parameters.append(parameter)
            }
        } catch {
            throw Refusal(
                .malformed, detail: "the body is not a JSON object that can be signed: \(error.description)")
        }
        // Names that are one in lower case are refused here, too.
        try FormParameters.sortUnique(&workspace, of: "members of the body")
    }

    /// `k=v`, joined by `&`. Names are escaped here and not before: they are sorted as they are.
    static func append(
        _ members: borrowing [FormParameter], of decoded: Span<UInt8>, to text: inout ByteBuffer
    ) {
        for index in members.indices {
            let member = members[index]
            if index > 0 { text.append(UInt8(ascii: "&")) }
            text.append(escaping: decoded.extracting(member.name.range))
            text.append(UInt8(ascii: "="))
            text.append(decoded.extracting(member.value.range))
        }
    }

    /// ASCII letters only: what else has case is a question of the locale.
    private static func appendName(
        _ raw: ByteRange, of body: Span<UInt8>, to text: inout ByteBuffer
    ) throws(ParseError) -> ByteRange {
        let start = text.count
        var hasNUL = false
        try JSONMembers.forEachByte(of: raw, in: body) {
            hasNUL = hasNUL || $0 == 0
            text.append(ASCII.lowercased($0))
        }
        if hasNUL { throw ParseError(offset: Int(raw.start), reason: "a NUL in a name") }
        return ByteRange(from: start, to: text.count)
    }

    private static func appendValue(
        _ member: JSONMembers.Member, of body: Span<UInt8>, to text: inout ByteBuffer
    ) throws(ParseError) -> ByteRange {
        let start = text.count
        switch member.kind {
        case .null, .emptyContainer: break
        case .yes: text.append(UInt8(ascii: "1"))
        case .no: text.append(UInt8(ascii: "0"))
        case .number: text.append(body.extracting(member.value.range))
        case .container: text.append(escaping: body.extracting(member.value.range))
        case .string:
            var hasNUL = false
            try JSONMembers.forEachRun(of: member.value, in: body) { run in
                // A string holds a NUL as an escape alone, which is a run of its own.
                hasNUL = hasNUL || (run.count == 1 && run[0] == 0)
                text.append(escaping: run)
            }
            if hasNUL { throw ParseError(offset: Int(member.value.start), reason: "a NUL in a string") }
        }
        return ByteRange(from: start, to: text.count)
    }
}
