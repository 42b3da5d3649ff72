import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct PolicyTests {
    @Test(
        "values and their one spelling",
        arguments: [
            ("schemes=form-md5,message-signatures", "form-md5,message-signatures"), ("window=60s", "60s"),
            ("window=5m", "300s"), ("window=24h", "86400s"),
            ("window=form-md5=300s,sigv4=1m", "form-md5=300s,sigv4=60s"),
            ("window=30s,form-md5=300s", "30s,form-md5=300s"), ("timezone=+08:00", "+08:00"),
            ("timezone=-03:30", "-03:30"), ("timezone=UTC", "+00:00"), ("timezone=-00:00", "+00:00"),
            ("debug=on", "on"), ("forward=x-trace,x-b", "x-trace,x-b"), ("session-max=030d", "30d"),
            ("session-max=off", "off"), ("session-max=12h", "12h"), ("slots=limit(3)", "limit(3)"),
            ("slots=limit(03)", "limit(3)"), ("registration=open", "open"),
            ("legacy-host=a.example.com", "a.example.com"),
            ("legacy-host=a.example.com:8443", "a.example.com:8443"), ("legacy-key=k=v", "k=v"),
            ("debug=", nil), ("form-md5-key=pair", "pair"), ("form-md5-key=appended", "appended"),
            ("form-md5-key=", nil),
            ("legacy-paths=login:/user/login,login:/v2/login/", "login:/user/login,login:/v2/login/"),
            ("legacy-paths=logout:/a:b", "logout:/a:b"), ("legacy-names=account:phoneNo", "account:phoneNo"),
            ("legacy-names=token:loginToken,login-token:x", "token:loginToken,login-token:x"),
            ("legacy-rung=md5", "md5"), ("rate-account=60/minute,burst=60", "60/minute"),
            ("rate-release=5/second", "5/second"), ("rate-address=1/day,burst=9", "1/day,burst=9"),
            ("allow-addresses=10.0.0.0/8,::1", "10.0.0.0/8,::1"), ("deny-addresses=192.0.2.1", "192.0.2.1"),
            ("maintenance=10m", "600s"), ("maintenance=off", "off"), ("cors-origins=*", "*"),
            ("cors-origins=https://a.example,http://b:1", "https://a.example,http://b:1"),
            ("cors-credentials=https://a.example", "https://a.example"),
        ])
    func good(_ row: (assignment: String, spelled: String?)) throws {
        #expect(try PolicyKey.change(row.assignment).value == row.spelled)
    }

    @Test(
        "values that are none",
        arguments: [
            "schemes=rot13", "schemes=form-md5,form-md5", "schemes=,", "window=60", "window=0s", "window=25h",
            "window=60s,30s", "window=form-md5=1s,form-md5=2s", "window=rot13=1s",
            "window=99999999999999999999s", "window=-1s", "window=s", "timezone=8", "timezone=+15:00",
            "timezone=+14:01", "timezone=+08:60", "timezone=08:00", "timezone=+0a:00", "debug=true",
            "forward=Host", "forward=connection", "forward=countersign-app", "forward=a b", "forward=x,x",
            "slots=limit(0)", "session-max=0d", "session-max=1001d", "session-max=x", "slots=many",
            "legacy-paths=login", "legacy-paths=login:", "legacy-paths=login:/", "legacy-paths=login:x",
            "legacy-paths=enter:/a", "legacy-paths=login:/a,logout:/a", "legacy-paths=login:/a//b",
            "legacy-paths=login:/a/../b", "legacy-paths=login:/a%62", "legacy-paths=login:/a;b",
            "legacy-paths=login:/a?b", "legacy-paths=logout:/login/token.php", "legacy-names=account",
            "legacy-names=account:", "legacy-names=a:b", "legacy-names=account:a,account:b",
            "legacy-names=account:password", "legacy-names=account:a b", "legacy-rung=hmac-md5-time",
            "legacy-rung=opaque", "registration=closed", "legacy-host=A", "legacy-host=a:",
            "legacy-host=a:080", "legacy-host=a:65536", "legacy-host=a:b", "nonsense=1", "window", "=1",
            "form-md5-key=Pair", "form-md5-key=prepended", "rate-account=5", "rate-release=0/second",
            "rate-address=5/week", "allow-addresses=10.0.0.1/8", "deny-addresses=,", "maintenance=on",
            "maintenance=25h", "cors-origins=a", "cors-origins=*,*", "cors-credentials=*",
            "token-in=bearer,bearer", "token-in=header:Cookie", "token-in=header:X_Token", "token-in=form:",
            "token-in=header:Authorization", "token-in=header:Content-Type", "token-in=form:a b",
            "token-in=header:countersign-app", "token-in=user-agent:/(a)/", "token-in=body:x",
            "user-in=bearer", "release-in=user-agent:/a/", "release-in=user-agent:(a)", "window=token=60s",
        ])
    func bad(_ assignment: String) {
        let fault = #expect(throws: OperationalError.self) { try PolicyKey.change(assignment) }
        #expect(fault?.kind == .usage)
    }

    @Test func whatTheGateReads() throws {
        guard let name = AppName("demo") else { return }
        var app = App(name: name, created: 0)
        app.settings = [
            "schemes": .text("form-md5"), "window": .text("30s,form-md5=400s"), "timezone": .text("-01:30"),
            "debug": .text("on"),
            "forward": .text("x-a"), "legacy-key": .sealed([1, 2]), "routes": .text("/ session"),
        ]
        let policy = try app.policy()
        #expect(policy.schemes == [.formMD5])
        #expect(policy.window(for: .formMD5) == 400)
        #expect(policy.window(for: .messageSignatures) == 30)
        #expect(policy.timezoneOffset == -5400)
        #expect(policy.detail == .exact)
        #expect(policy.forwardedFields == ["x-a"])
        #expect(policy.routes == RouteRules(all: .session))
        app.settings["window"] = .text("soon")
        #expect(throws: OperationalError.self) { try app.policy() }
    }

    @Test("an app without rules for its routes has no policy") func noRoutes() throws {
        let app = App(name: try #require(AppName("demo")), created: 0)
        #expect(throws: OperationalError.self) { try app.policy() }
    }

    @Test("what routes require is no policy key", arguments: ["anonymous=all", "device-signed=/pay"])
    func routeLevels(_ assignment: String) {
        let fault = #expect(throws: OperationalError.self) { try PolicyKey.change(assignment) }
        #expect(fault?.kind == .usage)
        #expect(fault?.message.contains("known are schemes, window") == true)
    }

    @Test("the default that is told is the default that counts", arguments: PolicyKey.all)
    func defaults(_ key: PolicyKey) throws {
        guard key.fallback != "none" else { return }
        var policy = Policy()
        key.set(key.fallback, in: &policy)
        for scheme in SchemeName.allCases {
            #expect(policy.window(for: scheme) == Policy().window(for: scheme))
        }
        #expect(policy.schemes == Policy().schemes)
        #expect(policy.timezoneOffset == Policy().timezoneOffset)
        #expect(policy.detail == Policy().detail)
    }

    @Test(
        "app names",
        arguments: [
            ("a", true), ("my-app.2", true), (String(repeating: "a", count: 64), true),
            (String(repeating: "a", count: 65), false), ("", false), ("A", false), ("a b", false),
            ("é", false), ("a/b", false), ("a\0", false), ("a_b", false),
        ])
    func names(_ row: (text: String, isGood: Bool)) { #expect((AppName(row.text) != nil) == row.isGood) }
}
