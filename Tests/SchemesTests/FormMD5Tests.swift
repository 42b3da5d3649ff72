import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct FormMD5Tests {
    @Test("figures of the field, as a form body and as a query", arguments: try forms())
    func knownAnswers(_ form: SignedForm) throws {
        let requests = [post(form.form).request(), get(form.form).request()]
        for request in requests {
            var workspace = Workspace()
            #expect(FormMD5().detect(in: request) == .present)
            let claim = try #require(try FormMD5().claim(in: request, workspace: &workspace))
            #expect(claim.mac.array == Hex.decode(form.sign))
            #expect(claim.keyID == KeyID(form.value("app_id")))
            guard case .nonce(let rand) = claim.replay else {
                Issue.record("rand is the replay key")
                continue
            }
            #expect(rand.array == Array(form.value("rand").utf8))
            #expect(
                claim.contradiction(to: form.value("plat"), version: form.value("ver"), workspace: workspace)
                    == nil)
            #expect(claim.contradiction(to: form.value("plat"), version: "0", workspace: workspace) != nil)
            #expect(claim.contradiction(to: "0", version: form.value("ver"), workspace: workspace) != nil)
            try FormMD5().writeStringToSign(for: claim, of: request, into: &workspace)
            #expect(workspace.text.displayText == form.stringToSign)
            let mac = SigningKey(form.key).mac(claim.algorithm, of: workspace.text)
            #expect(mac.array == Hex.decode(form.sign))
        }
    }

    @Test("signing what the figures hold gives their sign", arguments: try forms())
    func signs(_ form: SignedForm) throws {
        let base: Set = ["app_id", "plat", "ver", "rand", "timestamp"]
        var business: [UInt8] = []
        for pair in form.parameters where !base.contains(pair[0]) {
            Form.append(pair[0], value: Array(pair[1].utf8).span, to: &business)
        }
        let reading = CivilTime(Array(form.value("timestamp").utf8).span)
        let time = try #require(reading)
        let keyID = try #require(KeyID(form.value("app_id")))
        let credentials = Credentials(
            keyID: keyID, key: SigningKey(form.key), platform: form.value("plat"), version: form.value("ver"),
            timezoneOffset: 3600)
        var draft = post(String(decoding: business, as: UTF8.self))
        try FormMD5().sign(&draft, as: credentials, at: time.seconds - 3600, nonce: form.value("rand"))
        #expect(String(decoding: draft.body, as: UTF8.self).hasSuffix("&sign=\(form.sign)"))
    }

    @Test("each rule of the base parameters", arguments: rulesTable)
    func rules(_ row: (form: String, code: Refusal.Code?)) throws {
        let request = post(row.form).request()
        var workspace = Workspace()
        do {
            _ = try FormMD5().claim(in: request, workspace: &workspace)
            #expect(row.code == nil)
        } catch {
            #expect(error.code == row.code, "\(error.detail)")
        }
    }

    @Test("times as the field writes them", arguments: timesTable)
    func timestamps(_ row: (text: String, seconds: Int64?)) throws {
        let request = post(valid.replacing("2026-11-21-09:08:07", with: row.text)).request()
        var workspace = Workspace()
        let claim = try? FormMD5().claim(in: request, workspace: &workspace)
        #expect(claim?.created == row.seconds.map { .wallClock($0) })
    }

    @Test("where the scheme's signs are looked for", arguments: tracesTable)
    func trace(_ row: (method: String, target: String, type: String, body: String, trace: SchemeDetection)) {
        var draft = Draft(method: row.method, target: Array(row.target.utf8), authority: "h.example")
        draft.setField("Content-Type", to: row.type)
        draft.body = Array(row.body.utf8)
        #expect(FormMD5().detect(in: draft.request()) == row.trace)
    }

    @Test func queryOfAPostMayNotBearBaseNames() throws {
        for (query, code) in [
            ("x=1", nil), ("rand=1", .malformed), ("a=1&&rand=1", .malformed), ("s%69gn=1", .malformed),
        ] as [(String, Refusal.Code?)] {
            var draft = post(valid)
            draft.target = Array("/call?\(query)".utf8)
            var workspace = Workspace()
            do throws(Refusal) {
                _ = try FormMD5().claim(in: draft.request(), workspace: &workspace)
                #expect(code == nil)
            } catch {
                #expect(error.code == code)
            }
        }
    }

    @Test func bodyBesideASignedQueryIsRefused() {
        var draft = get(valid)
        draft.body = [1]
        #expect(throws: Refusal.self) {
            var workspace = Workspace()
            _ = try FormMD5().claim(in: draft.request(), workspace: &workspace)
        }
    }

    private func post(_ form: String) -> Draft {
        var draft = Draft(method: "POST", target: Array("/call".utf8), authority: "h.example")
        draft.setField("Content-Type", to: "application/x-www-form-urlencoded; charset=utf-8")
        draft.body = Array(form.utf8)
        return draft
    }

    private func get(_ form: String) -> Draft {
        Draft(method: "GET", target: Array("/call?\(form)".utf8), authority: "h.example")
    }

    private static func forms() throws -> [SignedForm] {
        try Vectors.load("form-md5/cases.json", as: SignedForm.self)
    }

    private let valid = FormMD5Tests.valid
    private static let valid =
        """
        app_id=A1&plat=iOS&ver=1.0&rand=abcdefgh&timestamp=2026-11-21-09:08:07&\
        sign=00112233445566778899aabbccddeeff
        """

    private static let rulesTable: [(form: String, code: Refusal.Code?)] = [
        (valid, nil),
        (valid + "&x=1&y=", nil),
        (valid + "&flag", nil),
        (valid.replacing("&sign=00112233445566778899aabbccddeeff", with: ""), .unsigned),
        (valid.replacing("aabbcc", with: "AABBCC"), .badSignature),
        (valid.replacing("ddeeff", with: "ddee"), .badSignature),
        (valid.replacing("ddeeff", with: "ddeefg"), .badSignature),
        (valid.replacing("app_id=A1", with: "app_id="), .unknownKey),
        (valid.replacing("app_id=A1", with: "app_id=a%20b"), .unknownKey),
        (valid.replacing("rand=abcdefgh", with: "rand=abcdefg"), .malformed),
        (valid.replacing("rand=abcdefgh", with: "rand=abcdefg-"), .malformed),
        (valid.replacing("rand=abcdefgh", with: "rand=\(String(repeating: "a", count: 64))"), nil),
        (valid.replacing("rand=abcdefgh", with: "rand=\(String(repeating: "a", count: 65))"), .malformed),
        (valid.replacing("&rand=abcdefgh", with: ""), .malformed),
        (valid.replacing("plat=iOS&", with: ""), .malformed),
        (valid.replacing("ver=1.0&", with: ""), .malformed),
        (valid.replacing("timestamp=2026", with: "timestamp=26"), .malformed),
        (valid + "&private_key=x", .malformed),
        (valid + "&rand=abcdefgh", .malformed),
        (valid + "&r%61nd=abcdefgh", .malformed),
        (valid + "&x=1&x=1", .malformed),
        (valid + "&x=a%00b", .malformed),
        (valid + "&x=%zz", .malformed),
        (valid + "&x=%4", .malformed),
        (valid + "&&x=1", .malformed),
        (valid + "&", .malformed),
        (valid + "&=1", .malformed),
        (valid + (0..<260).map { "&p\($0)=" }.joined(), .malformed),
    ]

    private static let timesTable: [(text: String, seconds: Int64?)] = [
        ("2026-11-21-09:08:07", 1_795_252_087),
        ("2026-11-21-9:08:07", 1_795_252_087),
        ("2026-11-21-09:08:07:99", 1_795_252_087),
        ("2026-1-2-3:04:05", 1_767_323_045),
        ("1970-01-01-00:00:00", 0),
        ("2000-02-29-23:59:59", 951_868_799),
        ("2024-02-29-00:00:00", 1_709_164_800),
        ("2023-02-29-00:00:00", nil),
        ("2100-02-29-00:00:00", nil),
        ("2026-13-01-00:00:00", nil),
        ("2026-00-01-00:00:00", nil),
        ("2026-04-31-00:00:00", nil),
        ("2026-04-00-00:00:00", nil),
        ("2026-04-01-24:00:00", nil),
        ("2026-04-01-00:60:00", nil),
        ("2026-04-01-00:00:60", nil),
        ("2026-04-01-00:00:0", nil),
        ("2026-04-01-00:00:00:1", nil),
        ("2026-04-01-00:00:00:100", nil),
        ("2026-04-01 00:00:00", nil),
        ("02026-04-01-00:00:00", nil),
        ("-026-04-01-00:00:00", nil),
        ("", nil),
    ]

    private static let tracesTable:
        [(method: String, target: String, type: String, body: String, trace: SchemeDetection)] = [
            ("POST", "/", "application/x-www-form-urlencoded", "app_id=1&sign=2", .present),
            ("POST", "/", "APPLICATION/X-WWW-FORM-URLENCODED ;a=b", "app_id=1&rand=2", .present),
            ("POST", "/", "application/x-www-form-urlencoded", "app%5fid=1&times%74amp=2", .present),
            ("POST", "/", "application/x-www-form-urlencoded", "app_id=1&x=2", .absent),
            ("POST", "/", "application/x-www-form-urlencoded", "sign=1&rand=2", .absent),
            ("POST", "/", "application/json", "app_id=1&sign=2", .absent),
            ("POST", "/?app_id=1&sign=2", "application/json", "{}", .absent),
            ("GET", "/?app_id=1&sign=2", "", "", .present),
            ("HEAD", "/?app_id=1&sign=2", "", "", .present),
            ("PUT", "/?app_id=1&sign=2", "", "", .absent),
            ("GET", "/app_id=1&sign=2", "", "", .absent),
            ("GET", "/?app_id2=1&sign=2", "", "", .absent),
        ]
}
