import CountersignHTTP
import CountersignServer
import CountersignWire
import Testing

@Suite struct ConfigurationTests {
    private func configuration(
        flags: [(String, String)] = [], environment: [String: String] = [:], file: String? = nil
    ) throws(OperationalError) -> Configuration {
        var sources = Configuration.Sources()
        sources.flags = flags.map { (name: $0.0, value: $0.1) }
        sources.environment = environment
        sources.file = file.map { (path: "settings.json", bytes: Array($0.utf8)) }
        return try Configuration(from: sources)
    }

    @Test func defaults() throws {
        let configuration = try configuration()
        #expect(configuration == Configuration())
        #expect(configuration.listen.description == "127.0.0.1:8443")
        #expect(configuration.admin?.description == "127.0.0.1:8444")
        #expect(configuration.store == .sqlite(path: ".countersign/countersign.db"))
        #expect(
            configuration.upstream == nil && configuration.workers == nil && configuration.authorities.isEmpty
        )
    }

    @Test func flagsOverEnvironmentOverFile() throws {
        let file = #"{"workers": 1, "prefix": "/file", /* why */ "log": "off", "listen": "a:1"} // end"#
        let environment = [
            "COUNTERSIGN_WORKERS": "2", "COUNTERSIGN_PREFIX": "/environment", "COUNTERSIGN_SERVICE_PORT": "x",
        ]
        let result = try configuration(
            flags: [("workers", "3"), ("workers", "4")], environment: environment, file: file)
        #expect(result.workers == 4)
        #expect(result.prefix == "/environment")
        #expect(result.log == .off)
        #expect(result.listen == HostPort(host: "a", port: 1))
    }

    @Test func theStoreFollowsTheData() throws {
        #expect(
            try configuration(environment: ["COUNTERSIGN_DATA": "/d"]).store
                == .sqlite(path: "/d/countersign.db"))
        let both = try configuration(flags: [("store", "sqlite:/s.db"), ("data", "/d")])
        #expect(both.store == .sqlite(path: "/s.db") && both.data == "/d")
        let postgres = try configuration(flags: [("store", "postgres://u:hunter2@h/db")])
        #expect(postgres.shown.text.contains("u:***@h") && !postgres.shown.text.contains("hunter2"))
    }

    @Test(
        "values",
        arguments: [
            ("listen", "[::1]:0"), ("admin", "off"), ("upstream", "https://b.example"),
            ("upstream", "http://[::1]:8080"), ("tls", "off"), ("tls", "a.pem,b.pem"),
            ("authority", "a.example,b:8443,[::1]:9"), ("log", "/var/log/x"), ("upstream-ca", "/ca.pem"),
            ("upstream-certificate", "c.pem,k.pem"), ("limit-upstream-connections", "1"),
            ("limit-upstream-waiting", "0"), ("prefix", "/a/b-c"), ("limit-head", "1024"),
            ("deadline-idle", "1"), ("replay", "file"), ("trace-context", "restart"), ("trace-sample", "100"),
            ("trace-export", "off"), ("trace-export", "https://c.example/v1/traces"),
            ("trace-export", "http://[::1]:4318/x/y"), ("trace-export-fields", "/fields"),
            ("allow-addresses", "10.0.0.0/8,::1"), ("deny-addresses", "192.0.2.0/24"),
            ("rate-address", "200/second,burst=50"), ("rate-address", "off"),
            ("replay", "redis://localhost:6379/2"), ("replay", "rediss://cs@a:1,b:2?cafile=/ca&passfile=/p"),
        ])
    func values(_ row: (name: String, value: String)) throws {
        let shown = try configuration(flags: [(row.name, row.value)]).shown.text
        #expect(shown.contains("\"\(row.value)\"") || shown.contains(":\(row.value)"))
    }

    @Test(
        "what is wrong is named with what was expected",
        arguments: [
            ("listen", "8443"), ("listen", "host:99999"), ("listen", "::1:80"), ("listen", ":80"),
            ("listen", "a b:1"), ("admin", "none"), ("upstream", "example.com"),
            ("upstream", "http://u:pw@h"), ("upstream", "http://h/path"), ("upstream", "ftp://h"),
            ("upstream", "http://h:0"), ("upstream", "http://h?q"), ("tls", "cert.pem"), ("tls", "a,b,c"),
            ("tls", ",b"), ("authority", "a,,b"), ("authority", "https://a"), ("workers", "0"),
            ("workers", "-1"), ("workers", "1e3"), ("workers", "99999999999999999999"), ("prefix", "x"),
            ("prefix", "/"), ("prefix", "/a/"), ("prefix", "/../x"), ("prefix", "/a?b"),
            ("upstream-certificate", "only.pem"), ("limit-upstream-connections", "0"), ("limit-head", "1"),
            ("deadline-head", "0"), ("store", "postgres://u:hunter2@h/db?sslmode=disable"),
            ("store", "sqlite:"), ("store", "mysql:x"), ("replay", "redis://:hunter2@h"), ("data", ""),
            ("replay", "redis:/:hunter2@h"), ("store", "postgres:u:hunter2@h/db"), ("store", "u:hunter2@h"),
            ("store", "u:hunter2@\u{301}h"), ("store", "postgres://u:12?hunter2@h"),
            ("store", "postgres://h/db?key=a@hunter2"), ("store", "postgres:/\u{301}/u:hunter2@h"),
            ("replay", "password\u{301}=hunter2"), ("store", "u:hunter2@h://x"),
            ("store", "password=hunter2://x"), ("store", " postgres://u:hunter2"), ("log", "a\0b"),
            ("trace-context", "off"), ("trace-sample", "0"), ("trace-export", "c.example"),
            ("trace-export", "http://u:hunter2@c"), ("trace-export", "ftp://c"),
            ("trace-export", "http://c:0"), ("allow-addresses", "10.0.0.1/8"), ("deny-addresses", "x"),
            ("rate-address", "10/60s"), ("trace-export", "http://c/p?q=1"), ("trace-export", "http://a,b"),
        ])
    func wrong(_ row: (name: String, value: String)) throws {
        for place in ["flag", "environment", "file"] {
            let variable = "COUNTERSIGN_" + row.name.uppercased().replacing("-", with: "_")
            let key = row.name.replacing("-", with: "_")
            let fault = #expect(throws: OperationalError.self, "\(place)") {
                switch place {
                case "flag": try configuration(flags: [(row.name, row.value)])
                case "environment": try configuration(environment: [variable: row.value])
                default: try configuration(file: JSONValue.object([(key, .string(row.value))]).text)
                }
            }
            #expect(fault?.kind == .usage)
            let named =
                ["flag": "--\(row.name)", "environment": variable, "file": "settings.json: \(key)"][place]
                ?? ""
            #expect(fault?.message.hasPrefix(named) == true, "\(fault?.message ?? "")")
            #expect(fault?.message.contains("expected") == true)
            #expect(fault?.message.contains("hunter2") == false)
            #expect(fault?.message.contains("u:12") == false)
        }
    }

    @Test(
        "files that are none",
        arguments: [
            ("", "not JSON"), ("[]", "expected an object"), (#"{"nonsense": 1}"#, "nonsense"),
            (#"{"workers": true}"#, "workers"), (#"{"listen": {"port": 1}}"#, "listen"),
            (#"{"workers": 1, "workers": 2}"#, "workers"), (#"{"authority": [1]}"#, "authority"),
        ])
    func files(_ row: (text: String, word: String)) {
        let fault = #expect(throws: OperationalError.self) { try configuration(file: row.text) }
        #expect(fault?.kind == .usage)
        #expect(fault?.message.contains("settings.json") == true && fault?.message.contains(row.word) == true)
    }

    @Test func unknownFlag() {
        #expect(throws: OperationalError.self) { try configuration(flags: [("nonsense", "1")]) }
    }

    @Test("what is printed is a settings file that says the same")
    func printed() throws {
        let first = try configuration(flags: [
            ("listen", "[::1]:0"), ("admin", "off"), ("upstream", "http://h:1"), ("tls", "a,b"),
            ("authority", "x,y:2"),
            ("workers", "7"), ("limit-body", "5"), ("deadline-drain", "0"), ("log", "off"), ("data", "/d"),
        ])
        let second = try configuration(file: first.shown.prettyText)
        #expect(second == first)
        #expect(second != Configuration())
    }

    @Test func listsInAFile() throws {
        #expect(
            try configuration(file: #"{"authority": ["A.example", "b:1"]}"#).authorities == [
                "a.example", "b:1",
            ])
    }
}
