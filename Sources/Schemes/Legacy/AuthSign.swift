import CountersignSeal
import CountersignWire

extension AuthParameters {
    /// Refuses a form body beside signed parameters in the query where nothing signs it.
    static func refuseUnsignedForm(in request: Request) throws(Refusal) {
        guard request.hasFormType, !request.body.isEmpty || !request.isBodyWhole else { return }
        throw Refusal(.malformed, "signed parameters in the query, and others in a form body: expected one place")
    }

    static func md5(_ body: borrowing Span<UInt8>) -> ShortBytes {
        var hash = MD5()
        hash.update(body)
        return ShortBytes(hash.finish())
    }

    /// Adds `parameters` and `auth_signature`.
    static func sign(
        _ draft: inout Draft, adding parameters: [UInt8], with scheme: some Scheme, _ key: SigningKey
    ) throws(Refusal) {
        let unsigned = draft
        let place: Draft.FormPlace = !draft.body.isEmpty && draft.request().hasFormType ? .body : .query
        draft.attach(parameters + Array("&auth_signature=\(String(repeating: "0", count: 64))".utf8), to: place)
        // Read back as a receiver would: a name that is there twice, or parameters in both places, end here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try scheme.claim(in: request, &workspace) else {
            throw Refusal(.malformed, "auth_version: expected it once, and this scheme's")
        }
        try scheme.spell(claim, request, &workspace)
        let mac = key.mac(.hmacSHA256, of: workspace.text)
        draft = unsigned
        draft.attach(parameters + Array("&auth_signature=\(Hex.encode(mac.span))".utf8), to: place)
    }
}
