import CountersignWire

/// Form parameters under one MD5, a key for each platform and version. Source: docs/protocol.md, form-md5.
///
/// The parameters are those of a form body where the request is a POST with one, otherwise those of the query.
package struct FormMD5: Scheme {
    package init() {}

    package var name: SchemeName { .formMD5 }
    package var dialect: AnswerDialect { .legacy }

    package var coverage: Coverage {
        Coverage(
            covered: [.formParameters],
            uncovered: [.method, .authority, .transport, .path, .query, .otherFields, .formSpelling],
            weaknesses: [
                "values are not escaped: a=\"1&b=2\" signs like a=1, b=2",
                "the query of a POST is not signed",
                "MD5 over a text with the secret inside is not a MAC",
            ])
    }

    package func trace(in request: Request) -> Trace {
        guard let place = place(of: request) else { return .absent }
        if place == .body, !request.isBodyWhole { return .outOfReach }
        return FormMD5Names(in: text(at: place, of: request)).areSigned ? .present : .absent
    }

    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim? {
        guard let place = place(of: request), request.isBodyWhole || place != .body else { return nil }
        let text = text(at: place, of: request)
        let scan = FormParameters.scan(text, &workspace.parameters, for: FormMD5Names.self)
        guard scan.names.areSigned else { return nil }
        if let problem = scan.problem { throw FormParameters.refusal(problem) }
        switch place {
        case .body:
            if let query = request.query { try refuseBaseNames(in: request.head.span.extracting(query.range)) }
        case .query:
            guard request.body.isEmpty, request.isBodyWhole else {
                throw Refusal(.malformed, "a body beside signed parameters in the query: nothing signs it")
            }
        }
        try FormParameters.decode(text, &workspace)
        try FormParameters.sortUnique(&workspace, of: "form parameters")
        return try FormMD5Claim.read(workspace)
    }

    /// All parameters but `sign`, and `private_key` where it belongs among them. Names are sorted by bytes; nothing is
    /// escaped.
    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        var text = workspace.text.takeBytes()
        var secretOffset = -1
        for parameter in workspace.parameters {
            let name = workspace.decoded.span.extracting(parameter.name.range)
            if name.matches("sign") { continue }
            if secretOffset < 0, FormMD5Names.isPrivateKey(before: parameter, workspace.decoded.span) {
                secretOffset = appendPrivateKey(to: &text)
            }
            if !text.isEmpty { text.append(UInt8(ascii: "&")) }
            text.append(name)
            text.append(UInt8(ascii: "="))
            text.append(workspace.decoded.span.extracting(parameter.value.range))
        }
        if secretOffset < 0 { secretOffset = appendPrivateKey(to: &text) }
        workspace.text.put(back: &text, secretAt: secretOffset)
    }

    private func appendPrivateKey(to text: inout ByteBuffer) -> Int {
        if !text.isEmpty { text.append(UInt8(ascii: "&")) }
        text.append("private_key=")
        return text.count
    }

    // MARK: Where the parameters are

    private enum Place: Equatable {
        case body
        case query(Slice)
    }

    private func place(of request: Request) -> Place? {
        if request.matches(request.method, "POST") { return request.hasFormType ? .body : nil }
        guard request.matches(request.method, "GET") || request.matches(request.method, "HEAD") else { return nil }
        return request.query.map(Place.query)
    }

    @_lifetime(borrow request)
    private func text(at place: Place, of request: borrowing Request) -> Span<UInt8> {
        switch place {
        case .body: request.body.span
        case .query(let slice): request.head.span.extracting(slice.range)
        }
    }

    private func refuseBaseNames(in query: Span<UInt8>) throws(Refusal) {
        guard FormMD5Names(in: query).areForeign else {
            throw Refusal(.malformed, "signed parameters in the body, and more of their names in the query")
        }
    }
}
