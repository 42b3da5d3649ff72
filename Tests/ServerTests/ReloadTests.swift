import CountersignHTTP
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
        "trusted-proxies": "10.0.0.0/8", "decide": "nginx", "proxy-protocol": "require",
        "underscore-fields": "keep", "allow-methods": "M-SEARCH", "forward-caller-fields": "x-http-method",
        "workers": "7", "prefix": "/other", "login-account": "7/7s",
        "login-address": "7/7s", "login-device": "7/7s", "login-solved": "7/7s", "login-work": "7/7s",
        "login-pending": "77", "login-hashes": "7", "upstream-ca": "/ca.pem",
        "upstream-certificate": "c.pem,k.pem", "limit-address-connections": "7",
        "allow-addresses": "10.0.0.0/8", "deny-addresses": "10.0.0.0/8", "rate-address": "7/second",
        "admin-tls": "on", "trace-context": "restart", "trace-export": "http://c:1",
        "trace-export-fields": "/fields",
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
        let candidates = ["1077", "77", "7", "300", "0"]
        let text = ([Self.other(setting)] + candidates).first { text in
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

    @Test func theBackendThatWaitsKeepsItsCertificates() throws {
        let old = try Self.configuration([])
        let new = try Self.configuration([
            ("upstream", "https://h"), ("upstream-ca", "/ca.pem"), ("upstream-certificate", "c.pem,k.pem"),
            ("limit-head", "2000"),
        ])
        let changes = old.changes(to: new)
        #expect(
            changes.filter(\.needsRestart).map(\.name) == ["upstream", "upstream-ca", "upstream-certificate"])
        let reloaded = old.reloaded(from: new)
        #expect(reloaded.contradictions(workers: 1).isEmpty && reloaded.limits.headBytes == 2000)
        // Nor does the way back leave an https backend without its authorities.
        #expect(new.reloaded(from: old).upstreamSettings == new.upstreamSettings)
    }

    @Test func whatWaitsContradictsNothing() throws {
        let old = try Self.configuration([("decide", "nginx"), ("trusted-proxies", "10.0.0.0/8")])
        let new = try Self.configuration([])
        let found = Reloader.contradictions(
            of: old.reloaded(from: new), workers: 1, after: old.changes(to: new), origins: [:])
        #expect(
            found.map(\.message) == [
                "--decide nginx: expected --trusted-proxies with the proxies that ask; "
                    + "--decide keeps its value until a restart"
            ])
        let certificate = try Self.configuration([("upstream-ca", "/ca.pem"), ("decide", "nginx")])
        #expect(
            certificate.contradictions(workers: 2_000).map(\.name) == [
                "decide", "limit-upstream-connections", "upstream-ca",
            ])
    }

    /// A resolver that fails must keep no certificate from being renewed.
    @Test func aRunningServersAddressesAreNotResolvedAgain() throws {
        var sources = Configuration.Sources()
        sources.flags = [("listen", "nowhere.invalid:1"), ("admin", "nowhere.invalid:2")]
        let result = Configuration.read(from: sources)
        func names(running: Configuration?) -> [String?] {
            result.check(environment: [:], running: running).map(\.setting)
                .filter { ["listen", "admin"].contains($0) }
        }
        #expect(names(running: nil) == ["listen", "admin"])
        #expect(names(running: result.configuration) == [])
        #expect(names(running: try Self.configuration([("admin", "nowhere.invalid:2")])) == ["listen"])
    }

    @Test func theDataFolderOfSettingsThatAreWrong() throws {
        var sources = Configuration.Sources()
        sources.file = (path: "f.json", bytes: Array(#"{"data": "/d", "workers": 0, "odd": 1}"#.utf8))
        #expect(try Configuration.dataFolder(in: sources) == "/d")
        for wrong in [#"{"data": "/d", "#, "[]", #"{"data": ""}"#, #"{"data": 1e3}"# + "x"] {
            sources.file = (path: "f.json", bytes: Array(wrong.utf8))
            let fault = #expect(throws: OperationalError.self) {
                try Configuration.dataFolder(in: sources)
            }
            #expect(fault?.kind == .usage && fault?.message.hasPrefix("f.json: ") == true)
        }
        sources.environment = ["COUNTERSIGN_DATA": "/e"]
        #expect(try Configuration.dataFolder(in: sources) == "/e")
    }

    @Test func loopsThatAreLateAreCounted() throws {
        let (running, waiting) = (try EventLoop(), try EventLoop())
        try running.start(name: "running")
        let loops = PendingLoops()
        loops.perform(on: running) {}
        #expect(loops.wait(milliseconds: 5_000) == 0)
        loops.perform(on: waiting) {}
        loops.perform(on: running) {}
        #expect(loops.wait(milliseconds: 200) == 1)
        running.stop()
        running.join()
        let report = ReloadReport(lateLoops: 1, problems: [])
        let text = "1 event loop is busy and takes the settings later"
        #expect(report.text.hasSuffix(text) && report.line.hasSuffix(text))
        #expect(report.json.text.contains(#""late_loops":1"#))
    }

    @Test func aReportThatIsTooLongSaysWhatItLeavesOut() throws {
        let value = String(repeating: "\u{1}", count: 200)
        let change = SettingChange(name: "log", old: value, new: value, needsRestart: false)
        let whole = ReloadReport(
            changes: Array(repeating: change, count: 40), files: ["/a", "/b"], problems: [])
        let sent = whole.bounded
        #expect(sent.omitted > 0)
        #expect(
            sent.omitted == whole.changes.count + whole.files.count - sent.changes.count - sent.files.count)
        #expect(sent.text.hasSuffix("\nand \(sent.omitted) more; the log names all"))
        #expect(sent.json.text.contains(#""omitted":\#(sent.omitted)"#))
        // Even with none left, it does not say that nothing has changed.
        let long = SettingChange(
            name: String(repeating: "x", count: 70_000), old: "", new: "", needsRestart: false)
        let none = ReloadReport(changes: [long], problems: []).bounded
        #expect(none.changes.isEmpty && none.text == "and 1 more; the log names all")
        #expect(ReloadReport(problems: []).bounded.text == "no setting has changed")
    }

    @Test func aRefusalThatIsTooLongSaysWhatItLeavesOut() throws {
        let origin = ConfigurationProblem.Origin(
            place: "/f", file: "/" + String(repeating: "f", count: 400), line: 1)
        let problems = (1...900).map { ConfigurationProblem(message: "wrong: \($0)", origin: origin) }
        let whole = ReloadReport.refused(problems)
        let sent = whole.bounded
        #expect(whole.omitted > 0 && sent.omitted > whole.omitted)
        #expect(sent.problems == Array(problems.prefix(sent.problems.count)))
        #expect(sent.problems.count + sent.omitted == 900)
        let omission = "and \(sent.omitted) more; `countersign serve --check-config` shows all"
        #expect(sent.text.contains("\n\(omission)\n") && sent.line.hasSuffix(omission))
        #expect(sent.json.text.contains(#""message":"\#(omission)""#))
    }

    /// One character may have any number of combining marks.
    @Test func oneLongCharacterIsCut() throws {
        let long = "a" + String(repeating: "\u{301}", count: 400_000)
        let report = ReloadReport.refused([ConfigurationProblem(message: long, origin: nil)])
        #expect(report.text.utf8.count < 5_000)
        let (before, after) = (
            try Self.configuration([("log", "/a")]), try Self.configuration([("log", long)])
        )
        #expect(try #require(before.changes(to: after).first).new.unicodeScalars.count == 201)
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
