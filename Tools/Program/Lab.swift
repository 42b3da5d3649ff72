import CountersignAuthority
import CountersignCLI
import CountersignLab
import CountersignServer
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

extension Command {
    static let lab = Command(
        .lab,
        options: [
            Option(
                name: "scheme", kind: .list("S"),
                meaning: "these rows; several with commas, `*` for any characters (default: all)",
                form: .schemes),
            .list("attack", placeholder: "A", meaning: "these attacks, by their names or their columns'"),
            .value(
                "html", placeholder: "F",
                meaning: "write a page to F, with what was sent, seen and done in each cell"),
            .value("save", placeholder: "F", meaning: "write the JSON to F, besides what is printed"),
            .value(
                "expect", placeholder: "F",
                meaning: "compare with the verdicts in F; exit 1 where they differ"),
            .value("jobs", placeholder: "N", meaning: "so many rows side by side (default: twice the cores)"),
            .list(
                "with", placeholder: "TOOL",
                meaning: "eavesdrop with tshark, stand in the middle (mitm) with mitmproxy or "
                    + "mitmproxy=PATH"),
            .flag(
                "record",
                meaning: "keep the verdicts in the data folder, for the console and `countersign lab last`"),
            .data,
            .flag(
                "broken",
                meaning:
                    "attack our own server with each fault that countersign-breakable can be started with: "
                    + "all must be caught"
            ),
            .flag("list", meaning: "say which rows and attacks there are, and attack nothing"), .json,
        ],
        notes: """
            Every cell is an attack that is carried out, on loopback, with an app, a server and a bank of \
            its own: H, it failed;
            F, the attacker reached the goal and proved it; –, there is nothing to attack; !, it could not \
            be staged,
            which is an error. Rows without +gateway are the old schemes at a server as teams have it, with \
            its flaws.

            Exit status 1: a cell could not be staged, or differs from --expect; without --expect, a row of \
            ours fell.
            A row whose server is another program, nginx, is not run where that is not installed, and said \
            to be so; exit 3
            where nothing else was asked for.
            One row, or one attack, is shown with how each cell came about.
            """
    ) { (run) throws(OperationalError) in
        if run.arguments.has("list") {
            let selection = try LabOptions.selection(run.arguments)
            try run.print(LabCatalogue.json(selection)) { LabCatalogue.text(selection) }
            return .success
        }
        if run.arguments.has("broken") { return try BrokenServerCommand.run(run) }
        let request = try LabOptions(run)
        let report = try makeReport(request.selection, run: run)
        if let page = request.page { try page.replace(MatrixPage(report).html) }
        if let document = request.document { try document.replace(report.json.prettyText + "\n") }
        if let folder = request.recordFolder { try LabRecord(report).record(in: folder) }
        if run.arguments.has("json") {
            try run.console.print(report.json.prettyText)
        } else {
            let style: TerminalPainter.Style = run.style == .coloured ? .coloured : .plain
            try run.console.print(painted: MatrixText(report, style: style).text)
        }
        return exitStatus(of: report.matrix, expected: request.expected, console: run.console)
    }

    private static func makeReport(_ selection: Selection, run: Invocation) throws(OperationalError)
        -> LabReport
    {
        let settings = try LabOptions.settings(run)
        InterruptCleanup.install()
        defer { InterruptCleanup.removeLeftovers() }
        let lab = Lab(settings: settings)
        let line = LabProgressLine(run.console)
        let (began, clock) = (run.now, SystemMonotonicClock())
        let start = clock.nanoseconds
        let matrix = try BlockingTask.run { () async throws(OperationalError) in
            await lab.run(rows: selection.rows, attacks: selection.attacks) { line.show($0) }
        }
        line.end()
        return LabReport(
            matrix: matrix, began: began, seconds: Double(clock.nanoseconds &- start) / 1e9,
            version: Product.version)
    }

    /// What the shell is told; what differs is said on standard error.
    private static func exitStatus(of matrix: Matrix, expected: ExpectedMatrix?, console: Console)
        -> ExitStatus
    {
        guard !matrix.rows.isEmpty else { return .unreachable }
        guard let expected else { return matrix.faults.isEmpty && matrix.broken.isEmpty ? .success : .failed }
        let differences = expected.differences(from: matrix)
        for difference in differences { console.note(difference.description) }
        if !differences.isEmpty { console.reportError("\(differences.count) cells are not as expected") }
        return differences.isEmpty ? .success : .failed
    }
}

/// What the options of `lab` ask for, understood before anything is staged.
struct LabOptions {
    let selection: Selection
    let expected: ExpectedMatrix?
    let page: OutputFile?
    let document: OutputFile?
    /// Where the verdicts are recorded; nil if they are not.
    let recordFolder: DataFolder?

    init(_ run: Invocation) throws(OperationalError) {
        selection = try LabOptions.selection(run.arguments)
        expected = try run.arguments.value("expect").map(LabOptions.expected)
        page = try run.arguments.value("html").map(OutputFile.init)
        document = try run.arguments.value("save").map(OutputFile.init)
        guard run.arguments.has("record") else {
            guard !run.arguments.has("data") else {
                throw OperationalError(.usage, message: "--data says nothing without --record")
            }
            recordFolder = nil
            return
        }
        recordFolder = try DataFolder(run.dataFolder(), absence: .fail)
    }

    /// Rows and attacks by their names.
    static func selection(_ arguments: Arguments) throws(OperationalError) -> Selection {
        do {
            return try Selection(rows: arguments.values("scheme"), attacks: arguments.values("attack"))
        } catch {
            let (option, what) = error.kind == .row ? ("scheme", "row") : ("attack", "attack, and no column,")
            let hint = SpellingSuggestion.text(for: error.word, among: error.known)
            throw OperationalError(
                .usage,
                message:
                    "--\(option) `\(error.word)`: no such \(what) in the lab\(hint); there are "
                    + "\(error.known.joined(separator: ", "))"
            )
        }
    }

    /// How many rows are attacked side by side.
    static func jobs(_ arguments: Arguments) throws(OperationalError) -> Int {
        // Rows wait more than they compute.
        guard let text = arguments.value("jobs") else {
            return 2 * max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        }
        guard let jobs = Int(text), (1...64).contains(jobs) else {
            throw OperationalError(.usage, message: "--jobs `\(text)`: expected a number from 1 to 64")
        }
        return jobs
    }

    /// Gateways are the program beside this one.
    static func settings(_ run: Invocation) throws(OperationalError) -> LabSettings {
        let (jobs, tools) = (try jobs(run.arguments), try tools(run.arguments))
        var settings = LabSettings(binary: try .installed(), jobs: jobs)
        settings.tools = tools
        return settings
    }

    /// With what attackers listen and interpose.
    static func tools(_ arguments: Arguments) throws(OperationalError) -> LabTools {
        do {
            return try LabTools(
                arguments.values("with"), path: getenv("PATH").map { String(cString: $0) } ?? "")
        } catch {
            throw OperationalError(error.kind, message: "--with: \(error.message)")
        }
    }

    private static func expected(_ path: String) throws(OperationalError) -> ExpectedMatrix {
        let bytes = try Console.readFile(path)
        do {
            return try ExpectedMatrix(reading: bytes)
        } catch {
            throw OperationalError(.usage, message: "--expect \(path): \(error)")
        }
    }
}

/// A file that a command writes in the end. It is opened at the start: that there is no such folder is not to
/// be learnt after minutes.
final class OutputFile {
    private let file: Int32
    private let path: String

    /// What stands in it stays until ``replace(_:)``.
    init(_ path: String) throws(OperationalError) {
        self.path = path
        file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw Errno.error("\(path): cannot be written", kind: .usage) }
    }

    deinit { close(file) }

    /// Puts the text in the place of what stood there.
    func replace(_ text: String) throws(OperationalError) {
        guard ftruncate(file, 0) == 0 || errno == EINVAL, Console.writeAll(Array(text.utf8), to: file) else {
            throw Errno.error("\(path): cannot be written")
        }
    }
}

/// `countersign lab --broken`: whether the attacks find the faults that `countersign-breakable` can have.
enum BrokenServerCommand {
    static func run(_ run: Invocation) throws(OperationalError) -> ExitStatus {
        for option in ["scheme", "html", "save", "expect", "with", "record", "data"]
        where run.arguments.has(option) {
            throw OperationalError(
                .usage,
                message: "--\(option) says nothing with --broken: each fault has its row and its attack")
        }
        let wanted = Set(try LabOptions.selection(run.arguments).attacks.map(\.name))
        var settings = try LabOptions.settings(run)
        settings.binary = try .breakable()
        let lab = BrokenServerRun(
            settings: settings,
            servers: BrokenServer.all.filter { wanted.contains($0.attack) })
        guard !lab.servers.isEmpty else {
            throw OperationalError(
                .usage,
                message: "--attack: none of these attacks is what a broken server is to be found by")
        }
        InterruptCleanup.install()
        defer { InterruptCleanup.removeLeftovers() }
        let line = LabProgressLine(run.console)
        let findings = try BlockingTask.run { () async throws(OperationalError) in
            do throws(LabError) {
                return try await lab.run { line.show($0) }
            } catch {
                throw OperationalError(.failed, message: "lab --broken: \(error)")
            }
        }
        line.end()
        try run.print(findings.json) { findings.text }
        return findings.allSatisfy { $0.verdict == .caught } ? .success : .failed
    }
}

/// What `lab --list` tells: the rows and attacks there are.
enum LabCatalogue {
    static func json(_ selection: Selection) -> JSONValue {
        let rows = selection.rows.map { row -> JSONValue in
            ["scheme": .string(row.name.description), "summary": .string(row.summary)]
        }
        let attacks = selection.attacks.map { attack -> JSONValue in
            [
                "name": .string(attack.name.description), "column": .string(attack.column.rawValue),
                "sentence": .string(attack.sentence),
            ]
        }
        return ["rows": .array(rows), "attacks": .array(attacks)]
    }

    static func text(_ selection: Selection) -> String {
        let rows = Table.text(
            head: ["SCHEME", "WHAT"], rows: selection.rows.map { [$0.name.description, $0.summary] })
        let attacks = Table.text(
            head: ["ATTACK", "COLUMN", "WHAT"],
            rows: selection.attacks.map { [$0.name.description, $0.column.rawValue, $0.sentence] })
        return "\(rows)\n\n\(attacks)"
    }
}

/// A line on a terminal with the progress of a lab run and the running attacks; nothing if there is no
/// terminal.
final class LabProgressLine: Sendable {
    private let console: Console
    private let shown = Atomic<UInt64>(0)

    init(_ console: Console) { self.console = console }

    func show(_ progress: LabProgress) {
        let now = SystemMonotonicClock().nanoseconds
        let last = shown.load(ordering: .relaxed)
        // Ten times a second, by whichever thread comes first.
        guard console.isErrorTerminal, now &- last > 100_000_000,
            shown.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
        console.replaceLine(LabProgressLine.text(progress))
    }

    func end() { if console.isErrorTerminal { console.replaceLine("") } }

    static func text(_ progress: LabProgress) -> String {
        let (done, total) = (progress.done, max(progress.total, 1))
        let share = min(done * 20 / total, 20)
        let bar = String(repeating: "#", count: share) + String(repeating: ".", count: 20 - share)
        let work = progress.attack.map { "\(progress.row): \($0)" } ?? "\(progress.row): setting the stage"
        return "[\(bar)] \(done) of \(progress.total)  \(work)"
    }
}
