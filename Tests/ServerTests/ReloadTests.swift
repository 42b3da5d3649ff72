import CountersignWire
import Testing

@testable import CountersignServer

/// A reload applies exactly the settings of which the table says so.
@Suite struct ReloadTests {
    /// A value of each setting that is not its default.
    private static let others = [
        "data": "/other", "listen": "[::1]:1", "admin": "off", "upstream": "http://h:1",
        "store": "sqlite:/o.db", "outage": "closed", "replay": "redis://localhost", "log": "/log",
        "tls": "c.pem,k.pem", "authority": "a.example", "assertion-audience": "urn:a",
        "trusted-proxies": "10.0.0.0/8", "decide": "nginx", "proxy-protocol": "require", "fast-path": "off",
        "underscore-fields": "keep", "allow-methods": "M-SEARCH", "forward-caller-fields": "x-http-method",
        "workers": "7", "prefix": "/other", "idempotency": "store", "login-account": "7/7s",
        "login-address": "7/7s", "login-device": "7/7s", "login-solved": "7/7s", "login-work": "7/7s",
        "login-pending": "77", "login-hashes": "7", "upstream-ca": "/ca.pem",
        "upstream-certificate": "c.pem,k.pem", "limit-address-connections": "7",
    ]

    private static func configuration(_ settings: [(name: String, value: String)]) throws -> Configuration {
        var sources = Configuration.Sources()
        sources.flags = settings
        return try Configuration(from: sources)
    }

    private static func other(_ setting: Setting) -> String {
        if let text = others[setting.name] { return text }
        // Within the range of each number, and no number's default.
        return ["limit-kept-bytes", "limit-kept-account-bytes"].contains(setting.name) ? "1048577" : "1077"
    }

    @Test("the effect of each setting is what a reload does", arguments: Setting.all.map(\.name))
    func effect(_ name: String) throws {
        let setting = try #require(Setting.all.first { $0.name == name })
        // What `upstream` and `log` apply are changes between two values that are not the default.
        let before: [(name: String, value: String)] =
            switch name {
            case "upstream": [("upstream", "http://before:1")]
            case "log": [("log", "/before")]
            default: []
            }
        let old = try Self.configuration(before)
        let ranges = ["1077", "77", "7", "300", "0"]
        let text = ([Self.other(setting)] + ranges).first { text in
            var probe = old
            return setting.set(&probe, text) != nil && probe != old
        }
        let new = try Self.configuration([(name, try #require(text))])
        let change = try #require(old.changes(to: new).first { $0.name == name })
        let reloaded = old.reloaded(from: new)
        #expect(setting.show(new) != setting.show(old))
        #expect(setting.show(reloaded) == setting.show(change.needsRestart ? old : new))
        switch setting.effect {
        case .onRestart: #expect(change.needsRestart)
        case .onReload, .onReloadExcept: #expect(!change.needsRestart)
        }
        // The running server is then at the new value, and a second reload finds no change.
        #expect(reloaded.changes(to: new).filter { !$0.needsRestart }.isEmpty)
    }

    @Test(
        "changes that need a restart although others of the setting do not",
        arguments: [
            ("tls", "off"), ("upstream", "http://h:1"), ("log", "off"),
        ])
    func exceptions(_ row: (name: String, value: String)) throws {
        let (old, new) = (try Self.configuration([]), try Self.configuration([(row.name, row.value)]))
        let change = try #require(old.changes(to: new).first)
        #expect(change.name == row.name && change.needsRestart)
        #expect(old.reloaded(from: new) == old)
    }

    @Test func anotherPasswordIsAChangeThatIsNotShown() throws {
        let old = try Self.configuration([("replay", "redis://:hunter2@localhost")])
        let new = try Self.configuration([("replay", "redis://:hunter3@localhost")])
        let change = try #require(old.changes(to: new).first)
        #expect(change.needsRestart && change.old == change.new && !change.old.contains("hunter"))
        #expect(old.changes(to: old).isEmpty)
    }

    @Test func valuesInAReportAreBounded() throws {
        let long = "/" + String(repeating: "x", count: 5_000)
        let change = try #require(
            try Self.configuration([("log", "/a")]).changes(to: try Self.configuration([("log", long)])).first
        )
        #expect(change.new.count == 201)
    }

    @Test func placesOfProblems() throws {
        var sources = Configuration.Sources()
        sources.file = (path: "f.json", bytes: Array("{\n\n\"workers\": 0, \"odd\": 1}".utf8))
        sources.flags = [("listen", "x")]
        let reading = Configuration.read(from: sources)
        #expect(reading.problems.map(\.origin?.line) == [3, 3, nil])
        #expect(reading.problems[0].text.hasPrefix("f.json:3: workers: `0`: expected"))
        #expect(reading.problems[1].text.hasPrefix("f.json:3: `odd`: no such setting"))
        #expect(reading.problems[2].text.hasPrefix("--listen: `x`: expected"))
    }
}
