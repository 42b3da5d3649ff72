import CountersignWire

extension FormMD5 {
    /// Adds the base parameters and `sign`: to the query of a GET or HEAD, otherwise to the form body. `plat` and `ver`
    /// may be in the draft already, where the credentials do not know them.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
        guard (0..<253_402_300_800).contains(at) else { throw Refusal(.malformed, "time: expected a year up to 9999") }
        guard let place = place(for: draft.method) else {
            throw Refusal(.malformed, "form-md5 signs GET, HEAD and POST, not \(draft.method)")
        }
        var added: [UInt8] = []
        Form.append("app_id", bytes(credentials.keyID.description).span, to: &added)
        if !credentials.platform.isEmpty { Form.append("plat", bytes(credentials.platform).span, to: &added) }
        if !credentials.version.isEmpty { Form.append("ver", bytes(credentials.version).span, to: &added) }
        Form.append("rand", bytes(nonce).span, to: &added)
        let time = CivilTime(seconds: at + Int64(credentials.timezoneOffset))
        Form.append("timestamp", bytes(time.description).span, to: &added)

        let unsigned = draft
        draft.attach(added + bytes("&sign=00000000000000000000000000000000"), to: place)
        // Read back as a receiver would: a name that is there twice, or a parameter that is missing, ends here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, &workspace) else {
            throw Refusal(.malformed, "the content type of a signed form is application/x-www-form-urlencoded")
        }
        try spell(claim, request, &workspace)
        let mac = credentials.key.mac(.md5OverSecret, of: workspace.text)
        draft = unsigned
        draft.attach(added + bytes("&sign=\(Hex.encode(mac.span))"), to: place)
    }

    func place(for method: String) -> Draft.FormPlace? {
        switch method {
        case "GET", "HEAD": .query
        case "POST": .body
        default: nil
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
}
