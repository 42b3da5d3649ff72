import CountersignWire

extension FormMD5 {
    /// Adds the base parameters and `sign`: to the query of a GET or HEAD, otherwise to the form body. `plat` and `ver`
    /// may be in the draft already, where the credentials do not know them.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
        guard (0..<253_402_300_800).contains(at) else { throw Refusal(.malformed, "time: expected a year up to 9999") }
        guard let place = Destination(draft.method) else {
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
        attach(added + bytes("&sign=00000000000000000000000000000000"), to: place, of: &draft)
        // Read back as a receiver would: a name that is there twice, or a parameter that is missing, ends here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, &workspace) else {
            throw Refusal(.malformed, "the content type of a signed form is application/x-www-form-urlencoded")
        }
        try spell(claim, request, &workspace)
        let mac = credentials.key.mac(.md5OverSecret, of: workspace.text)
        draft = unsigned
        attach(added + bytes("&sign=\(Hex.encode(mac.span))"), to: place, of: &draft)
    }

    private enum Destination {
        case query, body

        init?(_ method: String) {
            switch method {
            case "GET", "HEAD": self = .query
            case "POST": self = .body
            default: return nil
            }
        }
    }

    private func attach(_ parameters: [UInt8], to place: Destination, of draft: inout Draft) {
        switch place {
        case .query:
            let mark = draft.target.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
            let isOpen = draft.target.last == UInt8(ascii: "?") || draft.target.last == UInt8(ascii: "&")
            draft.target += (isOpen ? [] : [mark]) + parameters
        case .body:
            draft.body += (draft.body.isEmpty ? [] : [UInt8(ascii: "&")]) + parameters
            if !draft.fields.contains(where: { $0.name.lowercased() == "content-type" }) {
                draft.set("Content-Type", "application/x-www-form-urlencoded")
            }
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
}
