import CountersignAuthority
import CountersignLab
import CountersignWire

extension Command {
    static let lab = Command(
        words: ["lab"], summary: "attack every scheme, live, and show what held",
        options: [
            .list("scheme", "S", "these rows; several with commas, `*` for any characters (default: all)"),
            .list("attack", "A", "these attacks, by their names or their columns'"),
            .value("html", "F", "write a page to F, with what was sent, seen and done in each cell"),
            .value("save", "F", "write the JSON to F, besides what is printed"),
            .value("expect", "F", "compare with the verdicts in F; exit 1 where they differ"),
            .value("jobs", "N", "so many rows side by side (default: twice the cores)"),
            .list("with", "TOOL", "eavesdrop with tshark, stand in the middle (mitm) with mitmproxy or mitmproxy=PATH"),
            .flag(
                "broken",
                "attack our own server with each fault that a debug build can be told to have: all must be caught"),
            .flag("list", "say which rows and attacks there are, and attack nothing"), .json,
        ],
        notes: """
            Every cell is an attack that is carried out, on loopback, with an app, a server and a bank of its own: H, it failed;
            F, the attacker has shown that he got what he wanted; –, there is nothing to attack; !, it could not be staged,
            which is an error. Rows without +gateway are the old schemes at a server as teams have it, with its flaws.

            Exit status 1: a cell could not be staged, or differs from --expect; without --expect, a row of ours fell.
            A row whose server is another program, nginx, is not run where that is not installed, and said to be so; exit 3
            where nothing else was asked for.
            One row, or one attack, is shown with how each cell came about.
            """
    ) { (run) throws(Fault) in
        if run.arguments.has("list") {
            let selection = try LabRequest.selection(run.arguments)
            try run.print(LabCatalogue.json(selection)) { LabCatalogue.text(selection) }
            return .success
        }
        if run.arguments.has("broken") { return try LabBroken.run(run) }
        let request = try LabRequest(run)
        let report = try staged(request.selection, run)
        if let page = request.page { try page.replace(MatrixPage(report).html) }
        if let document = request.document { try document.replace(report.json.prettyText + "\n") }
        if run.arguments.has("json") {
            try run.console.print(report.json.prettyText)
        } else {
            let style: Paint.Style = run.style == .coloured ? .coloured : .plain
            try run.console.print(painted: MatrixText(report, style).text)
        }
        return judge(report.matrix, request.expected, run.console)
    }

    private static func staged(_ selection: Selection, _ run: Invocation) throws(Fault) -> LabReport {
        let settings = try LabRequest.settings(run)
        Interruption.arm()
        defer { Interruption.endWhatIsLeft() }
        let lab = Lab(settings: settings)
        let line = LabProgressLine(run.console)
        let (began, clock) = (run.now, SystemMonotonicClock())
        let start = clock.nanoseconds
        let matrix = try Waiting.run { () async throws(Fault) in
            await lab.run(selection.rows, selection.attacks) { line.show($0) }
        }
        line.end()
        return LabReport(
            matrix: matrix, began: began, seconds: Double(clock.nanoseconds &- start) / 1e9, version: Product.version)
    }

    /// What the shell is told; what differs is said on standard error.
    private static func judge(_ matrix: Matrix, _ expected: ExpectedMatrix?, _ console: Console) -> ExitStatus {
        guard !matrix.rows.isEmpty else { return .unreachable }
        guard let expected else { return matrix.faults.isEmpty && matrix.broken.isEmpty ? .success : .failed }
        let differences = expected.differences(from: matrix)
        for difference in differences { console.note(difference.description) }
        if !differences.isEmpty { console.complain("\(differences.count) cells are not as expected") }
        return differences.isEmpty ? .success : .failed
    }
}
