// form-md5 over multipart bodies: what a signer of ours makes is what a receiver reads, in both dialects.
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct FormMD5MultipartTests {
    private static let key = SigningKey(Secret(copying: Array("hUe7cXs2Rb9yKfJ4".utf8).span))
    private static let body = "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nJo & Ann\r\n"
    private static let file =
        "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\r\n\0PNG\r\n"

    private func draft(_ body: String, type: String = "multipart/form-data; boundary=b") -> Draft {
        var draft = Draft(method: "POST", target: Array("/up".utf8), authority: "api.example")
        draft.setField("Content-Type", to: type)
        draft.body = Array(body.utf8)
        return draft
    }

    private func credentials(_ place: FormMD5.KeyPosition) throws -> Credentials {
        var credentials = Credentials(
            keyID: try #require(KeyID("app-1")), key: FormMD5MultipartTests.key, platform: "ios",
            version: "1.0")
        credentials.formMD5Key = place
        return credentials
    }

    @Test("what is signed is read back", arguments: FormMD5.KeyPosition.allCases)
    func signs(_ place: FormMD5.KeyPosition) throws {
        var draft = draft(FormMD5MultipartTests.body + FormMD5MultipartTests.file + "--b--\r\n")
        let token = Secret(copying: Array("t-1".utf8).span)
        try FormMD5().addSessionParameters(to: &draft, userID: 7, token: token)
        try FormMD5().sign(&draft, as: try credentials(place), at: 1_800_000_000, nonce: "nonce00000000001")
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try FormMD5().claim(in: request, workspace: &workspace))
        #expect(claim.unsignedParts == Array("photo".utf8))
        #expect(claim.token(in: workspace) == Array("t-1".utf8))
        workspace.settings.formMD5Key = place
        try FormMD5().writeStringToSign(for: claim, of: request, into: &workspace)
        let text = workspace.text.displayText
        #expect(text.hasPrefix("app_id=app-1&note=Jo & Ann&plat=ios&"))
        #expect(text.hasSuffix(place == .pair ? "&userId=7&ver=1.0" : "&userId=7&ver=1.0<secret>"))
        #expect(text.contains("&private_key=<secret>&rand=") == (place == .pair))
        #expect(claim.compare(with: FormMD5MultipartTests.key, workspace: workspace) == .equal)
        workspace.settings.formMD5Key = place == .pair ? .appended : .pair
        try FormMD5().writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(claim.compare(with: FormMD5MultipartTests.key, workspace: workspace) == .different)
    }

    @Test(
        "what cannot be signed",
        arguments: [
            (body + "--b--", "multipart/form-data; boundary=c"), (body, "multipart/form-data; boundary=b"),
            (body + "--b--", "multipart/form-data"), ("", "multipart/form-data; boundary=b"),
            (body + "--b--", "multipart/mixed; boundary=b"),
            (body.replacing("note", with: "plat") + "--b--", "multipart/form-data; boundary=b"),
        ])
    func refused(_ row: (body: String, type: String)) throws {
        var draft = draft(row.body, type: row.type)
        let credentials = try credentials(.pair)
        #expect(throws: Refusal.self) {
            try FormMD5().sign(&draft, as: credentials, at: 1_800_000_000, nonce: "nonce00000000001")
        }
    }

    @Test func aBodyThatIsNotReadIsOutOfReach() {
        var request = draft(FormMD5MultipartTests.body + "--b--").request()
        request.body = []
        request.bodyState = .streaming
        #expect(FormMD5().detect(in: request) == .inUnreadBody)
        #expect(AuthV1().detect(in: request) == .absent)
    }
}
