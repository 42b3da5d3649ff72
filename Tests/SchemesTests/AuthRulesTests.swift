import CountersignSchemes
import CountersignWire
import Testing

/// Each rule of the parameters and fields in which auth-v1, auth-v2 and auth-v4 carry their signatures.
@Suite struct AuthRulesTests {
    @Test("auth-v1 and auth-v2, in the query", arguments: queriesTable)
    func inQuery(_ row: (query: String, code: Refusal.Code?)) throws {
        let draft = Draft(method: "GET", target: Array("/call?\(row.query)".utf8), authority: "h.example")
        #expect(code(of: draft) == row.code)
    }

    @Test("what stands in the query, and what in a body", arguments: placesTable)
    func place(_ row: (target: String, type: String, body: String, code: Refusal.Code?)) throws {
        var draft = Draft(method: "POST", target: Array(row.target.utf8), authority: "h.example")
        draft.setField("Content-Type", to: row.type)
        draft.body = Array(row.body.utf8)
        #expect(code(of: draft) == row.code)
    }

    @Test("a second Content-Type does not hide a form")
    func twoTypes() {
        var draft = Draft(method: "POST", target: Array("/call?\(Self.v1)".utf8), authority: "h.example")
        draft.body = Array("admin=1".utf8)
        draft.fields = [
            Draft.Field(name: "Content-Type", value: "text/plain"),
            Draft.Field(name: "Content-Type", value: Self.form),
        ]
        #expect(code(of: draft) == .malformed)
    }

    @Test("a large form may be signed inside; a large body of another kind is not")
    func large() {
        for (type, trace) in [
            ("application/x-www-form-urlencoded", SchemeDetection.inUnreadBody), ("text/plain", .absent),
        ] {
            var draft = Draft(method: "POST", target: Array("/call".utf8), authority: "h.example")
            draft.setField("Content-Type", to: type)
            var request = draft.request()
            request.isBodyWhole = false
            #expect(AuthV1().detect(in: request) == trace)
            #expect(AuthV2().detect(in: request) == trace)
        }
        var request = header([:]).request()
        request.isBodyWhole = false
        var workspace = Workspace()
        do {
            _ = try SchemeRegistry.standard.claim(in: request, workspace: &workspace)
            Issue.record("a body that was not read cannot be signed")
        } catch {
            #expect(error.code == .tooLarge)
        }
    }

    @Test("signs of two schemes")
    func twoSchemes() {
        let form =
            "app_id=A&plat=ios&ver=1&rand=abcdefgh&timestamp=2026-11-21-09:08:07&sign=\(mac.prefix(32))"
        for query in [form, Self.v1, Self.v2] {
            var draft = header([:])
            draft.target = Array("/call?\(query)".utf8)
            #expect(code(of: draft) == .malformed)
            draft = Draft(method: "GET", target: draft.target, authority: draft.authority)
            #expect(code(of: draft) == nil)
            draft.target += Array("&\(query == form ? Self.v1 : form)".utf8)
            #expect(code(of: draft) == .malformed)
        }
    }

    @Test("auth-v4's fields", arguments: fieldsTable)
    func fields(_ row: (change: [String: String?], code: Refusal.Code?)) {
        #expect(code(of: header(row.change)) == row.code)
    }

    @Test("auth-v4's bodies", arguments: bodiesTable)
    func body(_ row: (text: String, members: String?)) throws {
        var draft = header([:])
        draft.body = Array(row.text.utf8)
        guard let members = row.members else {
            #expect(code(of: draft) == .malformed)
            return
        }
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try AuthV4().claim(in: request, workspace: &workspace))
        try AuthV4().writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(workspace.text.displayText == "GET\nhttps://h.example/call?x=1\n\(members)")
        workspace.settings.publicURL = Array("http://public.example:8080".utf8)
        try AuthV4().writeStringToSign(for: claim, of: request, into: &workspace)
        #expect(workspace.text.displayText == "GET\nhttp://public.example:8080/call?x=1\n\(members)")
    }

    /// Nil where some scheme claims it and spells it.
    private func code(of draft: Draft) -> Refusal.Code? {
        let request = draft.request()
        var workspace = Workspace()
        do {
            let claim = try SchemeRegistry.standard.claim(in: request, workspace: &workspace)
            try SchemeRegistry.standard.scheme(named: claim.scheme)?.writeStringToSign(
                for: claim, of: request, into: &workspace)
            return nil
        } catch {
            return error.code
        }
    }

    private func header(_ change: [String: String?]) -> Draft {
        var draft = Draft(method: "GET", target: Array("/call?x=1".utf8), authority: "h.example")
        let usual: [String: String?] = [
            "X-Auth-Version": "4", "X-Auth-Client-ID": "k", "X-Auth-Timestamp": "1800000000",
            "X-Auth-Signature": mac,
        ]
        for (name, value) in usual.merging(change, uniquingKeysWith: { $1 }) {
            if let value { draft.fields.append(Draft.Field(name: name, value: value)) }
        }
        return draft
    }

    private static let v1 = "auth_key=k&auth_timestamp=1800000000&auth_version=1.0&auth_signature=\(mac)"
    private static let v2 = "auth_client_id=k&auth_timestamp=1800000000&auth_version=2&auth_signature=\(mac)"

    private static let queriesTable: [(query: String, code: Refusal.Code?)] = [
        (v1, nil), (v2, nil), (v2.replacing("auth_client_id", with: "auth_key"), nil),
        (v1.replacing("auth_key", with: "auth_client_id"), .unknownKey),
        (v1.replacing("auth_version", with: "%61uth%5Fversion"), nil),
        (v2.replacing("version=2", with: "version=%32"), nil), (v1.replacing("1.0", with: "1"), .malformed),
        (v1.replacing("&auth_version=1.0", with: ""), .malformed), (v1 + "&auth_version=2", .malformed),
        (v2 + "&auth_version=2", .malformed), (v1 + "&auth_key=k", .malformed),
        (v1 + "&AUTH_KEY=k", .malformed), (v2 + "&auth_key=k", .malformed),
        (v1.replacing("auth_key=k", with: "AUTH_KEY=k"), nil),
        (v1.replacing("auth_key=k", with: "auth_key="), .unknownKey),
        (v1.replacing("auth_key=k", with: "auth_key=a%20b"), .unknownKey),
        (v1.replacing("1800000000", with: "now"), .malformed),
        (v1.replacing("1800000000", with: "-1"), .malformed),
        (v1.replacing("1800000000", with: "1800000000.5"), .malformed),
        (v1.replacing("1800000000", with: "9999999999999999"), .malformed),
        (v1.replacing("1800000000", with: ""), .malformed),
        (v2.replacing("&auth_timestamp=1800000000", with: ""), .malformed),
        (v1.replacing(mac, with: String(mac.dropLast(2))), .badSignature),
        (v1.replacing(mac, with: mac.uppercased()), .badSignature),
        (v1.replacing("&auth_signature=\(mac)", with: ""), .unsigned),
        (v1.replacing("auth_signature", with: "auth_signature[]"), .unsigned), ("auth_key=k&x=1", .unsigned),
        ("auth_signature=\(mac)", .malformed), (v1 + "&a[]=1&a[]=2", nil), (v1 + "&a[]=1&b=2&a[]=2", nil),
        (v1 + "&a%5B%5D=1&a[]=2", nil), (v1 + "&a[]=1&a=2", .malformed), (v1 + "&a=1&a=1", .malformed),
        (v2 + "&a=1&a=2", .malformed), (v1 + "&a=1&A=2", .malformed), (v1 + "&a[]=1&A[]=2", .malformed),
        (v2 + "&a=1&A=2", nil), (v1 + "&[]=1", .malformed), (v1 + "&a=%00", .malformed),
        (v1 + "&a=%2500", nil), (v2 + "&a=%2500", .malformed), (v2 + "&a=50%25", nil),
        (v1 + "&a=%4", .malformed), (v1 + "&", .malformed),
        (v1 + (0..<260).map { "&p\($0)=" }.joined(), .malformed), (v1 + "&body_md5=x", .malformed),
        (v1 + "&body_md5=\(String(repeating: "a", count: 32))", nil),
    ]

    private static let form = "application/x-www-form-urlencoded"

    private static let placesTable: [(target: String, type: String, body: String, code: Refusal.Code?)] = [
        ("/call", form, v1, nil), ("/call", "\(form); charset=utf-8", v2, nil), ("/call?", form, v1, nil),
        ("/call?x=1", form, v1, .malformed), ("/call?\(v1)", form, v1, .malformed),
        ("/call?\(v1)", form, "x=1", .malformed), ("/call?\(v2)", form, "x=1", .malformed),
        ("/call?\(v1)", "\(form),text/plain", "x=1", .malformed),
        ("/call?\(v1)&body_md5=\(String(repeating: "a", count: 32))", form, "x=1", nil),
        ("/call?\(v1)", "application/json", "{}", nil), ("/call?\(v2)", "application/json", v1, nil),
        ("/call", "application/json", v1, .unsigned), ("/call?\(v1)", form, "", nil),
    ]

    private static let fieldsTable: [(change: [String: String?], code: Refusal.Code?)] = [
        ([:], nil), (["X-Auth-Version": "2"], .malformed), (["X-Auth-Version": nil], .malformed),
        (["x-auth-version": "4"], .malformed), (["x-auth-signature": mac], .unsigned),
        (["X-Auth-Signature": nil], .unsigned), (["X-Auth-Signature": "00"], .badSignature),
        (["X-Auth-Signature": mac.uppercased()], .badSignature), (["X-Auth-Client-ID": nil], .unknownKey),
        (["X-Auth-Client-ID": "a b"], .unknownKey), (["X-Auth-Timestamp": "1e9"], .malformed),
        (["X-Auth-Timestamp": nil], .malformed),
        (["X-Auth-Version": nil, "X-Auth-Signature": nil], .unsigned),
    ]

    private static let bodiesTable: [(text: String, members: String?)] = [
        ("", ""), ("{}", ""), (" {\n} ", ""), (#"{"b":1,"a":2}"#, "a=2&b=1"), (#"{"B":1,"a":2}"#, "a=2&b=1"),
        (#"{"a":-1.50E+2}"#, "a=-1.50E+2"), (#"{"a":"x y/\u00e9\n"}"#, "a=x%20y%2F%C3%A9%0A"),
        (#"{"a":"\ud83d\ude00"}"#, "a=%F0%9F%98%80"), (#"{"é b":0}"#, "%C3%A9%20b=0"), (#"{"":1}"#, "=1"),
        (#"{"a":[ ],"b":{ },"c":[ 1]}"#, "a=&b=&c=%5B%201%5D"),
        (#"{"a":{"x":1,"x":2}}"#, "a=%7B%22x%22%3A1%2C%22x%22%3A2%7D"), (#"{"a":1,"a":2}"#, nil),
        (#"{"a":1,"A":2}"#, nil), (#"{"a":1,"\u0061":2}"#, nil), (#"{"a":"\ud83d"}"#, nil),
        (#"{"a":"\ud83d\u0041"}"#, nil), (#"{"a":"\ude00"}"#, nil), (#"{"a":"\u0000"}"#, nil),
        (#"{"\u0000":1}"#, nil), (#"{"a":01}"#, nil), (#"{"a":1.}"#, nil), (#"{"a":+1}"#, nil),
        (#"{"a":tru}"#, nil), (#"{"a":1,}"#, nil), (#"{"a":1}x"#, nil), (#"{"a":1"#, nil), (#"{"a"}"#, nil),
        (#"{a:1}"#, nil), ("[1]", nil), ("1", nil), (" ", nil), ("{\"a\":\"\t\"}", nil),
        (#"{"a":"\x"}"#, nil), (#"{"a":[1,]}"#, nil), (#"{"a":[1}"#, nil),
        (
            #"{"a":\#(String(repeating: "[", count: 63))1\#(String(repeating: "]", count: 63))}"#,
            "a=\(String(repeating: "%5B", count: 63))1\(String(repeating: "%5D", count: 63))"
        ),
        (#"{"a":\#(String(repeating: "[", count: 64))1\#(String(repeating: "]", count: 64))}"#, nil),
        ("{\((0...256).map { "\"k\($0)\":1" }.joined(separator: ","))}", nil),
    ]
}

private let mac = String(repeating: "0a", count: 32)
