import CountersignWire

/// Reads what auth-v1 and auth-v2 have in common: parameters in the query or in a form body, never in both.
enum AuthParameters {
    enum Place: Equatable {
        case query
        case body
    }

    /// What names are sorted by.
    enum Order {
        case asWritten
        case lowerCased
    }

    static func trace(of scheme: SchemeName, names: ParameterNames) -> Trace {
        if !names.isFormUnread, names.body.areAuthSigned { return names.body.authScheme == scheme ? .present : .absent }
        if names.query.areAuthSigned { return names.query.authScheme == scheme ? .present : .absent }
        return names.isFormUnread ? .outOfReach : .absent
    }

    /// Leaves the parameters in `workspace`, sorted; says where they came from. Nil where that scheme signs nothing here.
    static func read(
        _ scheme: SchemeName, _ order: Order, in request: Request, names: ParameterNames, _ workspace: inout Workspace
    ) throws(Refusal) -> Place? {
        let place: Place = !names.isFormUnread && names.body.areAuthSigned ? .body : .query
        let signed = place == .body ? names.body : names.query
        guard signed.areAuthSigned, signed.authScheme == scheme else { return nil }
        let query = queryText(of: request)
        guard place == .query || query.count == 0 else {
            throw Refusal(.malformed, "signed parameters in a form body, and others in the query: expected one place")
        }
        let text = place == .query ? query : request.body.span
        try FormParameters.scan(text, into: &workspace.parameters)
        try FormParameters.decode(text, &workspace)
        try fold(order, &workspace)
        FormParameters.sort(&workspace)
        try refuseRepeated(workspace)
        return place
    }

    @_lifetime(borrow request)
    private static func queryText(of request: borrowing Request) -> Span<UInt8> {
        let query = request.query ?? .empty
        return request.head.span.extracting(query.range)
    }

    // MARK: Names

    /// Makes each name what it is sorted by: without the `[]` of arrays, and in that order's case.
    private static func fold(_ order: Order, _ workspace: inout Workspace) throws(Refusal) {
        for index in workspace.parameters.indices {
            var parameter = workspace.parameters[index]
            parameter.written = parameter.name
            if isArray(workspace.decoded.span.extracting(parameter.name.range)) { parameter.name.end -= 2 }
            guard !parameter.name.isEmpty else { throw Refusal(.malformed, "form parameters: [] without a name") }
            if order == .lowerCased { lowerCase(&parameter.name, in: &workspace.decoded) }
            parameter.prefix = FormParameter.prefix(of: workspace.decoded.span.extracting(parameter.name.range))
            workspace.parameters[index] = parameter
        }
    }

    private static func isArray(_ name: Span<UInt8>) -> Bool {
        name.count >= 2 && name[name.count - 2] == UInt8(ascii: "[") && name[name.count - 1] == UInt8(ascii: "]")
    }

    /// ASCII letters only: what else has case is a question of the locale.
    private static func lowerCase(_ name: inout Slice, in text: inout ByteBuffer) {
        var isLower = true
        for index in name.range where ASCII.lowercased(text.span[index]) != text.span[index] { isLower = false }
        if isLower { return }
        let start = text.count
        for index in name.range {
            let byte = text.span[index]
            text.append(ASCII.lowercased(byte))
        }
        name = Slice(start, text.count)
    }

    /// Only an array's name may come again, and then spelled the same: of all else two readers make different things.
    private static func refuseRepeated(_ workspace: borrowing Workspace) throws(Refusal) {
        let text = workspace.decoded.span
        for index in workspace.parameters.indices.dropFirst() {
            let (before, this) = (workspace.parameters[index - 1], workspace.parameters[index])
            guard before.prefix == this.prefix else { continue }
            let name = text.extracting(this.name.range)
            guard name.matches(text.extracting(before.name.range)) else { continue }
            guard this.isArray, text.extracting(this.written.range).matches(text.extracting(before.written.range))
            else {
                throw Refusal(.malformed, "form parameters: \(name.text) twice, and no array")
            }
        }
    }
}

extension FormParameter {
    /// Whether it is one of an array's: its name was written with `[]`.
    var isArray: Bool { written.count > name.count }

    /// Whether its name begins with `auth_`.
    var isAboutSignature: Bool {
        // The first five of the prefix's eight bytes.
        prefix >> 24 == 0x61_7574_685F
    }
}
