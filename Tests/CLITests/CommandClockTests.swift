import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignServer
import CountersignWire
import Foundation
import ScriptedClock
import Testing

@testable import CountersignCLI

private typealias CommandStatus = CountersignCLI.ExitStatus

/// A command judges its clock as a server does. While another clock contradicts it, the command makes nothing
/// that ends by date, and records have the time that has passed.
@Suite("Clock of commands") final class CommandClockTests {
    private static let days91: Int64 = 91 * 86_400

    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "command-clock-\(UUID().uuidString)")

    init() {
        _ = run("app", "add", "demo", "--require", "open")
        _ = run("account", "add", "demo", "alice")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private struct Outcome {
        let status: CommandStatus
        let output: String
        let notes: String
    }

    private func run(_ words: [String]) -> Outcome {
        let (output, errors) = (MemoryStream("output", limit: 1 << 20), MemoryStream("notes", limit: 1 << 20))
        let status = Tool.run(
            words + ["--data", folder.path],
            console: Console(input: [], output: output, errors: errors),
            environment: Environment(variables: [:]))
        return Outcome(
            status: status, output: String(decoding: output.bytes, as: UTF8.self),
            notes: String(decoding: errors.bytes, as: UTF8.self))
    }

    private func run(_ words: String...) -> Outcome { run(words) }

    private var record: URL { folder.appendingPathComponent("clock") }

    /// Writes what a server of this boot notes whose clock was `seconds` behind the present one: since then,
    /// the clock was set ahead.
    private func noteClock(behind seconds: Int64, boot: String? = nil) throws {
        let (wall, uptime) = TrustedClock.machine()
        let boot = try boot ?? MachineBoot.currentID()
        let mark = wall - seconds * 1_000
        let text = """
            {"boot":"\(boot)","trusted":1,"last_trusted":\(mark),"confirmation":0,"mark_wall":\(mark),\
            "mark_uptime":\(uptime),"agrees_since":0}
            """
        try Data(text.utf8).write(to: record)
    }

    private func opened() throws -> Deployment {
        var sources = Configuration.Sources()
        sources.flags = [("data", folder.path)]
        return try Configuration(from: sources).openDeployment(absence: .fail, environment: [:])
    }

    private static let expiring = [
        "account reset demo alice", "account code demo alice",
        "token add robot --scope apps:read --expires +1d", "console --name me",
        "release retire r-1 --at now --update-url https://shop.example/u --yes",
        "release retire r-1 --at +7d --update-url https://shop.example/u",
        "app policy demo --set enforcement=observe",
        "route set demo /a --require signed --enforcement observe=1d", "registration-key rotate",
        "assertion rotate", "answer-key rotate --force --yes",
    ]

    @Test(
        "nothing is made that ends by date; the error names the difference and the remedy",
        arguments: expiring)
    func expiry(of line: String) throws {
        let release = "release add demo --platform ios --version 1 --key-id r-1 --secret s"
        _ = run(release.split(separator: " ").map(String.init))
        let words = line.split(separator: " ").map(String.init)
        try noteClock(behind: Self.days91)
        let refused = run(words)
        #expect(refused.status == .failed && refused.output.isEmpty, "\(refused)")
        #expect(refused.notes.contains(" s ahead of the time expected by the machine's uptime"), "\(refused)")
        #expect(refused.notes.contains("countersign replay confirm-clock --yes"), "\(refused)")
        try noteClock(behind: 0)
        let made = run(words)
        #expect(made.status == .success, "\(made)")
    }

    @Test("other changes go on, with the time that has passed")
    func estimate() throws {
        let now = TrustedClock.machine().wall / 1_000
        try noteClock(behind: Self.days91)
        #expect(run("account", "lock", "demo", "alice").status == .success)
        #expect(run("account", "add", "demo", "bob").status == .success)
        #expect(run("token", "add", "robot", "--scope", "apps:read").status == .success)
        let shown = try JSONReader.read(Array(run("account", "show", "demo", "bob", "--json").output.utf8))
        let created = shown.root["created"].flatMap { shown.integer($0, in: 0...Int.max) } ?? 0
        #expect(abs(Int64(created) - (now - Self.days91)) < 60)
        #expect(abs(try opened().newestAuditTime() - (now - Self.days91)) < 60)
    }

    @Test("after a restart of the machine, the newest audit record decides")
    func newestRecord() throws {
        try noteClock(behind: -Self.days91)
        #expect(run("account", "add", "demo", "bob").status == .success)
        try noteClock(behind: 0, boot: "another boot, whose id has other chars")
        let refused = run("account", "reset", "demo", "alice")
        #expect(refused.status == .failed, "\(refused)")
        #expect(refused.notes.contains(" s behind the newest record"), "\(refused)")
    }

    @Test("a confirmation is noted for later commands and for the next server")
    func confirmation() throws {
        do { _ = try ReplayService(opened(), keys: ReleaseKeyDirectory(opened())) }
        try noteClock(behind: Self.days91)
        #expect(run("account", "reset", "demo", "alice").status == .failed)
        let confirmed = run("replay", "confirm-clock", "--yes")
        #expect(confirmed.status == .success, "\(confirmed)")
        let reset = run("account", "reset", "demo", "alice")
        #expect(reset.status == .success, "\(reset)")
        let text = try String(contentsOf: record, encoding: .utf8)
        #expect(text.contains("\"trusted\":1") && text.contains("\"confirmation\":1"))
    }

    @Test("a command that runs in a server follows the server's clock")
    func hosted() throws {
        let script = ScriptedClock(wall: 1_800_000_000)
        let clock = TrustedClock(reading: script.clocks)
        clock.begin(ClockTrust.Beginning())
        var sources = Configuration.Sources()
        sources.flags = [("data", folder.path)]
        let host = CommandHost(
            configuration: try Configuration(from: sources), actor: .server, scopes: Set(APIScope.allCases),
            deployment: AdministeredDeployment(environment: [:]), clock: clock, refusals: nil)
        func perform(_ command: Command, words: [String]) throws -> CommandExecution.Result {
            try CommandExecution(
                command: command, words: words, standardInput: [], host: host,
                environment: Environment(variables: [:])
            ).outcome.get()
        }
        script.jump(Self.days91)
        #expect(throws: OperationalError.self) { try perform(.accountCode, words: ["demo", "alice"]) }
        #expect(try perform(.accountLock, words: ["demo", "alice"]).status == .success)
        #expect(try opened().newestAuditTime() == 1_800_000_000)
        #expect(try host.administration.now == 1_800_000_000)
        script.jump(-Self.days91)
        #expect(try perform(.accountUnlock, words: ["demo", "alice"]).status == .success)
        #expect(try perform(.accountCode, words: ["demo", "alice"]).status == .success)
    }
}
