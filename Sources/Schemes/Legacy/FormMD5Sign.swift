import CountersignWire

extension FormMD5 {
    /// Adds the base parameters and `sign`: to the query of a GET or HEAD, otherwise to the form or multipart
    /// body. `plat` and `ver` may be in the draft already, where the credentials do not know them.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
        guard (0..<253_402_300_800).contains(at) else { throw Refusal(.malformed, "time: expected a year up to 9999") }
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
        // Read back as a receiver would: a name that is there twice, or a parameter that is missing, ends here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, &workspace) else {
            throw Refusal(
                .malformed,
                "the content type of a signed form is application/x-www-form-urlencoded or multipart/form-data")
        }
        workspace.formMD5Key = credentials.formMD5Key
        try spell(claim, request, &workspace)
        let mac = credentials.key.mac(.md5OverSecret, of: workspace.text)
        draft = unsigned
        draft.attach(added.signed(Hex.encode(mac.span)), to: place)
    }

    func place(in draft: Draft) throws(Refusal) -> Draft.FormPlace {
        switch draft.method {
        case "GET", "HEAD": return .query
        case "POST":
            let request = draft.request()
            guard request.hasMultipartType else { return .body }
            guard let boundary = Multipart.Boundary(in: request) else {
                throw Refusal(.malformed, "the content type: expected multipart/form-data; boundary=… and no more")
            }
            return .multipart(boundary)
        default: throw Refusal(.malformed, "form-md5 signs GET, HEAD and POST, not \(draft.method)")
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
}
