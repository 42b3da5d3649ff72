import CountersignSeal
import CountersignWire

/// Reads what auth-v1 and auth-v2 have in common: parameters in the query or in a form body, never in both.
enum AuthParameters {
    enum Location: Equatable {
        case query
        case body
    }

    /// What names are sorted by.
    enum Order {
        case asWritten
        case lowerCased
    }

    static func detect(_ scheme: SchemeName, names: RequestParameterNames) -> SchemeDetection {
        if !names.isFormUnread, names.body.hasAuthSignature {
            return names.body.authScheme == scheme ? .present : .absent
        }
        if names.query.hasAuthSignature { return names.query.authScheme == scheme ? .present : .absent }
        return names.isFormUnread ? .inUnreadBody : .absent
    }

    /// Leaves the parameters in `workspace`, sorted; says where they came from. Nil where that scheme signs
    /// nothing here.
    static func read(
        scheme: SchemeName, order: Order, in request: Request, names: RequestParameterNames,
        workspace: inout Workspace
    ) throws(Refusal) -> Location? {
        let place: Location = !names.isFormUnread && names.body.hasAuthSignature ? .body : .query
        let signed = place == .body ? names.body : names.query
        guard signed.hasAuthSignature, signed.authScheme == scheme else { return nil }
        let query = queryText(of: request)
        guard place == .query || query.count == 0 else {
            throw Refusal(
                .malformed,
                detail: "signed parameters in a form body, and others in the query: expected one place")
        }
        let text = place == .query ? query : request.body.span
        try FormParameters.scan(text, into: &workspace.parameters)
        try FormParameters.decode(text, into: &workspace)
        try foldNames(for: order, workspace: &workspace)
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
    private static func foldNames(for order: Order, workspace: inout Workspace) throws(Refusal) {
        for index in workspace.parameters.indices {
            var parameter = workspace.parameters[index]
            parameter.written = parameter.name
            if isArray(workspace.decoded.span.extracting(parameter.name.range)) { parameter.name.end -= 2 }
            guard !parameter.name.isEmpty else {
                throw Refusal(.malformed, detail: "form parameters: [] without a name")
            }
            if order == .lowerCased { lowerCase(&parameter.name, in: &workspace.decoded) }
            parameter.prefix = FormParameter.prefix(
                of: workspace.decoded.span.extracting(parameter.name.range))
            workspace.parameters[index] = parameter
        }
    }

    private static func isArray(_ name: Span<UInt8>) -> Bool {
        name.count >= 2 && name[name.count - 2] == UInt8(ascii: "[")
            && name[name.count - 1] == UInt8(ascii: "]")
    }

    /// ASCII letters only: what else has case is a question of the locale.
    private static func lowerCase(_ name: inout ByteRange, in text: inout ByteBuffer) {
        var isLower = true
        for index in name.range where ASCII.lowercased(text.span[index]) != text.span[index] {
            isLower = false
        }
        if isLower { return }
        let start = text.count
        for index in name.range {
            let byte = text.span[index]
            text.append(ASCII.lowercased(byte))
        }
        name = ByteRange(from: start, to: text.count)
    }

    /// Only an array's name may come again, and then spelled the same: of all else two readers make different
    /// things.
    private static func refuseRepeated(_ workspace: borrowing Workspace) throws(Refusal) {
        let text = workspace.decoded.span
        for index in workspace.parameters.indices.dropFirst() {
            let (before, this) = (workspace.parameters[index - 1], workspace.parameters[index])
            guard before.prefix == this.prefix else { continue }
            let name = text.extracting(this.name.range)
            guard name.matches(text.extracting(before.name.range)) else { continue }
            guard this.isArray,
                text.extracting(this.written.range).matches(text.extracting(before.written.range))
            else {
                throw Refusal(.malformed, detail: "form parameters: \(name.text) twice, and no array")
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

extension AuthParameters {
    /// Refuses a form body beside signed parameters in the query where nothing signs it.
    static func refuseUnsignedForm(in request: Request) throws(Refusal) {
        guard request.hasFormType, !request.body.isEmpty || !request.isBodyWhole else { return }
        throw Refusal(
            .malformed,
            detail: "signed parameters in the query, and others in a form body: expected one place")
    }

    static func md5(_ body: borrowing Span<UInt8>) -> ShortBytes {
        var hash = MD5()
        hash.update(body)
        return ShortBytes(hash.finish())
    }

    /// Adds `parameters` and `auth_signature`.
    static func sign(
        _ draft: inout Draft, adding parameters: [UInt8], with scheme: some Scheme, key: SigningKey
    ) throws(Refusal) {
        let unsigned = draft
        let place: Draft.ParameterLocation =
            !draft.body.isEmpty && draft.request().hasFormType ? .body : .query
        draft.attach(
            parameters + Array("&auth_signature=\(String(repeating: "0", count: 64))".utf8), to: place)
        // Read back as a receiver would: a name that is there twice, or parameters in both places, end here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try scheme.claim(in: request, workspace: &workspace) else {
            throw Refusal(.malformed, detail: "auth_version: expected it once, and this scheme's")
        }
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        let mac = key.mac(.hmacSHA256, of: workspace.text)
        draft = unsigned
        draft.attach(parameters + Array("&auth_signature=\(Hex.encode(mac.span))".utf8), to: place)
    }
}
