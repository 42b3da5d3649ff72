import CountersignSeal
import CountersignWire

/// Form parameters under one MD5, a key for each platform and version. Source: docs/protocol.md, form-md5.
///
/// The parameters are those of a form body where the request is a POST with one, the fields of a multipart
/// body where it is a POST with one of those, otherwise those of the query.
package struct FormMD5: Scheme {
    /// Where the private key stands in the string to sign: teams write it in one of two ways.
    package enum KeyPosition: String, Sendable, CaseIterable {
        /// Among the parameters, by its name: `a=1&private_key=KEY&z=2`.
        case pair
        /// Behind the last parameter, with nothing between: `a=1&z=2KEY`.
        case appended
    }

    package init() {}

    package var name: SchemeName { .formMD5 }
    package var dialect: ResponseDialect { .legacy }
    package var evidence: SchemeEvidence {
        SchemeEvidence(parameters: .formMD5)
    }

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

    package func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        guard let place = place(of: request) else { return .absent }
        if place == .body, names.isFormUnread { return .inUnreadBody }
        if place == .multipart, names.isMultipartUnread { return .inUnreadBody }
        return place.names(among: names).hasFormMD5Signature ? .present : .absent
    }

    package func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard let place = place(of: request), request.isBodyWhole || !place.isInBody,
            place.names(among: names).hasFormMD5Signature
        else { return nil }
        var files: [UInt8] = []
        if place == .multipart {
            files = try MultipartParameters.read(request, into: &workspace)
        } else {
            try FormParameters.scan(text(at: place, of: request), into: &workspace.parameters)
        }
        switch place {
        case .body, .multipart:
            guard names.query.hasNoFormMD5Names else {
                throw Refusal(
                    .malformed, detail: "signed parameters in the body, and more of their names in the query")
            }
        case .query:
            guard request.body.isEmpty, request.isBodyWhole else {
                throw Refusal(
                    .malformed, detail: "a body beside signed parameters in the query: nothing signs it")
            }
        }
        if place != .multipart { try FormParameters.decode(text(at: place, of: request), into: &workspace) }
        try FormParameters.sortUnique(&workspace, of: "form parameters")
        let claim = try FormMD5Claim.read(&workspace)
        claim.unsignedParts = files
        return claim
    }

    /// All parameters but `sign`, sorted by the bytes of their names; nothing is escaped. The private key
    /// stands among them as `private_key`, or behind the last of them, as the app's policy says.
    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        var text = workspace.text.takeBytes()
        var secretOffset = -1
        for parameter in workspace.parameters {
            let name = workspace.decoded.span.extracting(parameter.name.range)
            if name.matches("sign") { continue }
            if secretOffset < 0, workspace.settings.formMD5Key == .pair,
                FormMD5.isPrivateKey(before: parameter, in: workspace.decoded.span)
            {
                secretOffset = appendPrivateKey(to: &text)
            }
            if !text.isEmpty { text.append(UInt8(ascii: "&")) }
            text.append(name)
            text.append(UInt8(ascii: "="))
            text.append(workspace.decoded.span.extracting(parameter.value.range))
        }
        switch workspace.settings.formMD5Key {
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

    private enum SignedParameterLocation: Equatable {
        case body
        case multipart
        case query(ByteRange)

        var isInBody: Bool { if case .query = self { false } else { true } }

        func names(among names: RequestParameterNames) -> SignatureParameterNames {
            switch self {
            case .body, .multipart: names.body
            case .query: names.query
            }
        }
    }

    private func place(of request: Request) -> SignedParameterLocation? {
        if request.matches(request.method, text: "POST") {
            return request.hasFormType ? .body : request.hasMultipartType ? .multipart : nil
        }
        guard request.matches(request.method, text: "GET") || request.matches(request.method, text: "HEAD")
        else { return nil }
        return request.query.map(SignedParameterLocation.query)
    }

    @_lifetime(borrow request)
    private func text(at place: SignedParameterLocation, of request: borrowing Request) -> Span<UInt8> {
        switch place {
        case .body, .multipart: request.body.span
        case .query(let slice): request.head.span.extracting(slice.range)
        }
    }

    /// Whether `private_key`, which is not sent, sorts before that parameter.
    private static func isPrivateKey(before parameter: FormParameter, in text: borrowing Span<UInt8>) -> Bool
    {
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

extension FormMD5 {
    /// Adds the base parameters and `sign`: to the query of a GET or HEAD, otherwise to the form or multipart
    /// body. `plat` and `ver` may be in the draft already, where the credentials do not know them.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        guard (0..<253_402_300_800).contains(at) else {
            throw Refusal(.malformed, detail: "time: expected a year up to 9999")
        }
        let place = try place(in: draft)
        var added = AddedParameters(place)
        added.append("app_id", value: bytes(credentials.keyID.description).span)
        if !credentials.platform.isEmpty { added.append("plat", value: bytes(credentials.platform).span) }
        if !credentials.version.isEmpty { added.append("ver", value: bytes(credentials.version).span) }
        added.append("rand", value: bytes(nonce).span)
        let time = CivilTime(seconds: at + Int64(credentials.timezoneOffset))
        added.append("timestamp", value: bytes(time.description).span)

        let unsigned = draft
        draft.attach(added.signed(String(repeating: "0", count: 32)), to: place)
        // Read back as a receiver would: a name that is there twice, or a parameter that is missing, ends
        // here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, workspace: &workspace) else {
            throw Refusal(
                .malformed,
                detail:
                    "the content type of a signed form is application/x-www-form-urlencoded or "
                    + "multipart/form-data"
            )
        }
        workspace.settings.formMD5Key = credentials.formMD5Key
        try writeStringToSign(for: claim, of: request, into: &workspace)
        let mac = credentials.key.mac(.md5OverSecret, of: workspace.text)
        draft = unsigned
        draft.attach(added.signed(Hex.encode(mac.span)), to: place)
    }

    func place(in draft: Draft) throws(Refusal) -> Draft.ParameterLocation {
        switch draft.method {
        case "GET", "HEAD": return .query
        case "POST":
            let request = draft.request()
            guard request.hasMultipartType else { return .body }
            guard let boundary = Multipart.Boundary(in: request) else {
                throw Refusal(
                    .malformed,
                    detail: "the content type: expected multipart/form-data; boundary=… and no more")
            }
            return .multipart(boundary)
        default: throw Refusal(.malformed, detail: "form-md5 signs GET, HEAD and POST, not \(draft.method)")
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
}

extension FormMD5 {
    /// Adds `userId` and `token`, which a client sends once it is signed in; they are signed like all others.
    /// Source: docs/protocol.md, "Bearer sessions".
    package func addSessionParameters(to draft: inout Draft, userID: Int64, token: Secret) throws(Refusal) {
        let place = try place(in: draft)
        var added = AddedParameters(place)
        added.append("userId", value: Array("\(userID)".utf8).span)
        token.withExposedBytes { added.append("token", value: $0) }
        draft.attach(added.text, to: place)
    }
}

extension FormMD5: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 3, purpose: .legacy, defaultWindow: 300, replayDetection: .perKey,
            signedParameters: .form, nonceLength: 16)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [.formField("sign")], keyID: [.formField("app_id")], encoding: .hexadecimal(bytes: 16),
            lines: .positional([], then: .unnamed), firstParameterLine: 0)
    }
}
