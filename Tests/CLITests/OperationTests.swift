import CountersignAuthority
import CountersignGate
import CountersignServer
import CountersignWire
import Foundation
import Testing

@testable import CountersignCLI

private typealias CommandStatus = CountersignCLI.ExitStatus

/// The command line runs in process, with its streams in memory; an operation needs its scope whoever performs
/// it; and the JSON of each result is what its schema declares.
@Suite struct OperationTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "operations-\(UUID().uuidString)")

    private struct Outcome {
        let status: CommandStatus
        let output: String
        let notes: String
    }

    private func run(_ arguments: String..., input: String = "") -> Outcome {
        let (output, errors) = (MemoryStream("output", limit: 1 << 20), MemoryStream("notes", limit: 1 << 20))
        let status = Tool.run(
            arguments + ["--data", folder.path],
            console: Console(input: Array(input.utf8), output: output, errors: errors),
            environment: Environment(variables: [:]))
        return Outcome(
            status: status, output: String(decoding: output.bytes, as: UTF8.self),
            notes: String(decoding: errors.bytes, as: UTF8.self))
    }

    private func administration(having scopes: Set<APIScope>?) throws -> Administration {
        let configuration = try Configuration(
            from: {
                var sources = Configuration.Sources()
                sources.flags = [("data", folder.path)]
                return sources
            }())
        return Administration(
            deployment: try configuration.openDeployment(absence: .fail, environment: [:]), scopes: scopes,
            now: 1_800_000_000)
    }

    @Test func commandsRunInProcess() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let added = run("app", "add", "demo", "--require", "open", "--json")
        #expect(added.status == .success, "\(added.notes)")
        let document = try JSONReader.read(Array(added.output.utf8))
        #expect(document.root["app"]?.string == "demo")
        #expect(added.notes.contains("`open` lets no unsigned request through yet"))
        let again = run("app", "add", "demo")
        #expect(again.status == .failed && again.output.isEmpty)
        #expect(again.notes.contains("there is one of that name"))
        let many = run("route", "test", "demo", "GET", "-", input: "/v1\n/a%2fb\n")
        #expect(many.status == .success, "one rule for all")
        #expect(many.output.split(separator: "\n").count == 2)
        #expect(run("account", "add", "demo").status == .usage)
    }

    @Test func whatIsWrittenIsBounded() {
        let output = MemoryStream("a command's output", limit: 10)
        let console = Console(input: [], output: output, errors: MemoryStream("notes", limit: 10))
        #expect(throws: Never.self) { try console.print("12345678") }
        #expect(throws: OperationalError.self) { try console.print("9") }
        #expect(output.bytes == Array("12345678\n".utf8))
        #expect(!console.isInteractive && !console.isTerminal && !console.isErrorTerminal)
    }

    @Test func anOperationNeedsItsScope() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(run("app", "add", "demo").status == .success)
        let reader = try administration(having: [.appsRead])
        #expect(try AppOperations.list.perform(in: reader).apps.map(\.app.name.description) == ["demo"])
        let change = PolicyChange(app: try AppName(argument: "demo"), assignments: ["window=30s"])
        let error = #expect(throws: OperationalError.self) {
            try AppOperations.changePolicy.perform(change, in: reader)
        }
        #expect(error?.kind == .forbidden)
        let writer = try administration(having: [.appsWrite])
        let changed = try AppOperations.changePolicy.perform(change, in: writer)
        #expect(changed.entries.first { $0.key.name == "window" }?.isSet == true)
        #expect(throws: OperationalError.self) { try AppOperations.list.perform(in: writer) }
    }

    @Test func resultsAreAsTheirSchemasDeclare() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(run("app", "add", "demo", "--require", "open").status == .success)
        let name = try AppName(argument: "demo")
        let all = try administration(having: nil)
        func check<Value: APIValue>(_ value: Value) throws {
            let document = try JSONReader.read(value.json.bytes)
            let flaw = Value.schema.flaw(in: document.root, of: document, at: "\(Value.self)")
            #expect(flaw == nil)
        }
        try check(AppOperations.list.perform(in: all))
        try check(AppOperations.policy.perform(name, in: all))
        let maintenance = MaintenanceChange(apps: nil, retryAfter: "10m")
        try check(AppOperations.setMaintenance.perform(maintenance, in: all))
        try check(AppOperations.maintenance.perform(in: all))
        let route = RouteChange(
            app: name, prefix: "/v1", methods: ["GET"], level: .signed, enforcement: "observe=14d",
            limits: [("max-body", "1000")])
        try check(RouteOperations.set.perform(route, in: all))
        try check(RouteOperations.list.perform(name, in: all))
        for target in ["/v1/news", "/v1%2fnews"] {
            let test = RouteTarget(app: name, method: "GET", target: target)
            try check(RouteOperations.test.perform(test, in: all))
        }
        try check(
            RouteOperations.remove.perform(RouteName(app: name, prefix: "/v1", methods: ["GET"]), in: all))
    }
}
