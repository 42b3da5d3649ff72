import CountersignWire

/// Form parameters under one MD5, a key for each platform and version. Source: docs/protocol.md, form-md5.
///
/// The parameters are those of a form body where the request is a POST with one, the fields of a multipart
/// body where it is a POST with one of those, otherwise those of the query.
package struct FormMD5: Scheme {
    /// Where the private key stands in the string to sign: teams write it in one of two ways.
    package enum KeyPlace: String, Sendable, CaseIterable {
        /// Among the parameters, by its name: `a=1&private_key=KEY&z=2`.
        case pair
        /// Behind the last parameter, with nothing between: `a=1&z=2KEY`.
        case appended
    }

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
                "of a multipart body the files are not signed, nor which order the parts have",
                "MD5 over a text with the secret inside is not a MAC",
            ])
    }

    package func trace(in request: Request, names: ParameterNames) -> Trace {
        guard let place = place(of: request) else { return .absent }
        if place == .body, names.isFormUnread { return .outOfReach }
        if place == .multipart, names.isMultipartUnread { return .outOfReach }
        return place.names(among: names).areMD5Signed ? .present : .absent
    }

    package func claim(
        in request: Request, names: ParameterNames, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard let place = place(of: request), request.isBodyWhole || !place.isInBody,
            place.names(among: names).areMD5Signed
        else { return nil }
        var files: [UInt8] = []
        if place == .multipart {
            files = try MultipartParameters.read(request, into: &workspace)
        } else {
            try FormParameters.scan(text(at: place, of: request), into: &workspace.parameters)
        }
        switch place {
        case .body, .multipart:
            guard names.query.areWithoutMD5 else {
                throw Refusal(.malformed, "signed parameters in the body, and more of their names in the query")
            }
        case .query:
            guard request.body.isEmpty, request.isBodyWhole else {
                throw Refusal(.malformed, "a body beside signed parameters in the query: nothing signs it")
            }
        }
        if place != .multipart { try FormParameters.decode(text(at: place, of: request), &workspace) }
        try FormParameters.sortUnique(&workspace, of: "form parameters")
        let claim = try FormMD5Claim.read(workspace)
        claim.unsignedParts = files
        return claim
    }

    /// All parameters but `sign`, sorted by the bytes of their names; nothing is escaped. The private key
    /// stands among them as `private_key`, or behind the last of them, as the app's policy says.
    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        var text = workspace.text.takeBytes()
        var secretOffset = -1
        for parameter in workspace.parameters {
            let name = workspace.decoded.span.extracting(parameter.name.range)
            if name.matches("sign") { continue }
            if secretOffset < 0, workspace.formMD5Key == .pair,
                FormMD5.isPrivateKey(before: parameter, workspace.decoded.span)
            {
                secretOffset = appendPrivateKey(to: &text)
            }
            if !text.isEmpty { text.append(UInt8(ascii: "&")) }
            text.append(name)
            text.append(UInt8(ascii: "="))
            text.append(workspace.decoded.span.extracting(parameter.value.range))
        }
        switch workspace.formMD5Key {
        case .pair: if secretOffset < 0 { secretOffset = appendPrivateKey(to: &text) }
        case .appended: secretOffset = text.count
        }
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
        case multipart
        case query(Slice)

        var isInBody: Bool { if case .query = self { false } else { true } }

        func names(among names: ParameterNames) -> SignatureNames {
            switch self {
            case .body, .multipart: names.body
            case .query: names.query
            }
        }
    }

    private func place(of request: Request) -> Place? {
        if request.matches(request.method, "POST") {
            return request.hasFormType ? .body : request.hasMultipartType ? .multipart : nil
        }
        guard request.matches(request.method, "GET") || request.matches(request.method, "HEAD") else { return nil }
        return request.query.map(Place.query)
    }

    @_lifetime(borrow request)
    private func text(at place: Place, of request: borrowing Request) -> Span<UInt8> {
        switch place {
        case .body, .multipart: request.body.span
        case .query(let slice): request.head.span.extracting(slice.range)
        }
    }

    /// Whether `private_key`, which is not sent, sorts before that parameter.
    private static func isPrivateKey(before parameter: FormParameter, _ text: borrowing Span<UInt8>) -> Bool {
        let key: StaticString = "private_key"
        // `private_`, as prefixes have it.
        let prefix: UInt64 = 0x7072_6976_6174_655F
        if parameter.prefix != prefix { return prefix < parameter.prefix }
        let name = text.extracting(parameter.name.range)
        for index in 0..<min(name.count, key.utf8CodeUnitCount) where name[index] != key.utf8Start[index] {
            return key.utf8Start[index] < name[index]
        }
        return key.utf8CodeUnitCount < name.count
    }
}
