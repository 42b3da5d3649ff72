import CountersignAuthority
import CountersignThreads
import CountersignWire
import Glibc
import Synchronization

extension Command {
    static let accountImport = Command(
        words: ["account", "import"], summary: "take over an old backend's accounts",
        positionals: [
            Positional(name: "APP", presence: .optional), Positional(name: "FILE", presence: .optional),
        ],
        options: [
            .value(
                "app", placeholder: "APP", meaning: "whose they are; may be left out where there is one app"),
            .value(
                "format", placeholder: "csv|json", meaning: "what the file is (default: by its first byte)"),
            .flag("dry-run", meaning: "read and check every line, and write nothing"), .data, .json,
        ],
        notes: """
            `countersign account import FILE`, or `account import APP FILE`. FILE is `-` for standard input. \
            It is CSV whose first
            line is `name,user_id,rung,value`, or one JSON object a line with these members. `value` is what \
            the old backend
            keeps; it is wrapped before it is written, which takes some 12 ms of one core a row: all cores \
            are used.

            A line that cannot be taken is reported, and the rest is read; the exit status is then 1. Rows \
            that are there already
            are passed over, so an import that was broken off can be run again. --dry-run finds what the \
            file itself says wrongly
            and what is taken already, not what two lines of the file both want.
            """
    ) { (run) throws(OperationalError) in
        let (named, path) = try target(of: run)
        let deployment = try run.deployment()
        var app = named
        if app == nil { app = try onlyApp(of: deployment) }
        guard let app else {
            throw OperationalError(
                .usage, message: "--app is missing: expected the app whose accounts they are")
        }
        let job = ImportJob(
            run, accounts: try AccountImport(deployment, into: app), path: path,
            isDry: run.arguments.has("dry-run"))
        let report = try job.read()
        try run.print(report.json) { report.text }
        return report.refused == 0 ? .success : .failed
    }

    /// The app, where it is named, and the file: the last word.
    private static func target(of run: Invocation) throws(OperationalError) -> (app: AppName?, path: String) {
        guard let first = run.arguments.positional("APP") else {
            throw OperationalError(
                .usage,
                message:
                    "FILE is missing: expected `countersign account import APP FILE`, FILE being - for "
                    + "standard input"
            )
        }
        let option = run.arguments.value("app")
        guard let second = run.arguments.positional("FILE") else {
            return (try option.map(AppName.init(argument:)), first)
        }
        guard option == nil else {
            throw OperationalError(.usage, message: "--app: the app is named before the file already")
        }
        return (try AppName(argument: first), second)
    }

    /// Nil where there are several.
    private static func onlyApp(of deployment: Deployment) throws(OperationalError) -> AppName? {
        let apps = try deployment.store.apps()
        return apps.count == 1 ? apps[0].name : nil
    }
}

/// Reads the file of an import piece by piece, hands on what it holds in batches, and keeps count. What is
/// held at any time is a piece, a line and a batch, however large the file.
final class ImportJob {
    private let run: Invocation
    private let accounts: AccountImport
    private let path: String
    private let isDry: Bool
    private var waiting: [ImportedAccount] = []
    private var report: ImportReport
    private let progress: ImportProgress

    init(_ run: Invocation, accounts: AccountImport, path: String, isDry: Bool) {
        self.run = run
        self.accounts = accounts
        self.path = path
        self.isDry = isDry
        report = ImportReport(isDry: isDry)
        progress = ImportProgress(run.console)
        waiting.reserveCapacity(AccountImport.batch)
    }

    func read() throws(OperationalError) -> ImportReport {
        let file = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Errno.error("\(path): cannot open", kind: .usage) }
        defer { if path != "-" { close(file) } }
        progress.expect(bytesOf: file)
        var piece = try next(from: file)
        var reader = ImportReader(try format(of: piece))
        while !piece.isEmpty {
            try feed(&reader, piece: piece)
            progress.read(piece.count)
            piece = try next(from: file)
        }
        var lines: [ImportReader.Line] = []
        do { try reader.finish { lines.append($0) } } catch { throw unreadable(error) }
        try add(lines)
        try flush()
        progress.end()
        report.seconds = progress.seconds
        return report
    }

    private func next(from file: Int32) throws(OperationalError) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Errno.error("\(path): cannot read") }
            return Array(piece[..<count])
        }
    }

    /// JSON lines begin with a brace, and no CSV header does.
    private func format(of first: [UInt8]) throws(OperationalError) -> ImportReader.Format {
        switch run.arguments.value("format") {
        case "csv": return .csv
        case "json": return .jsonLines
        case nil:
            let text = first.starts(with: [0xEF, 0xBB, 0xBF]) ? first.dropFirst(3) : first[...]
            return text.first == UInt8(ascii: "{") ? .jsonLines : .csv
        case let other?: throw OperationalError(.usage, message: "--format `\(other)`: expected csv or json")
        }
    }

    private func feed(_ reader: inout ImportReader, piece: [UInt8]) throws(OperationalError) {
        var lines: [ImportReader.Line] = []
        do { try reader.feed(piece.span) { lines.append($0) } } catch {
            throw unreadable(error)
        }
        try add(lines)
    }

    private func unreadable(_ problem: ImportError) -> OperationalError {
        OperationalError(.failed, message: "\(path): \(problem)")
    }

    private func add(_ lines: [ImportReader.Line]) throws(OperationalError) {
        for line in lines {
            switch line {
            case .error(let problem): refuse(problem)
            case .account(let account):
                waiting.append(account)
                if waiting.count == AccountImport.batch { try flush() }
            }
        }
    }

    private func flush() throws(OperationalError) {
        guard !waiting.isEmpty else { return }
        let (batch, accounts, now, progress) = (waiting, accounts, run.now, progress)
        waiting.removeAll(keepingCapacity: true)
        let outcome: AccountImport.Outcome
        if isDry {
            outcome = try accounts.check(batch)
        } else {
            outcome = try BlockingTask.run { () throws(OperationalError) in
                try await accounts.add(batch, at: now) { progress.countRow() }
            }
        }
        report.taken += outcome.taken
        report.present += outcome.present
        for problem in outcome.errors { refuse(problem) }
    }

    /// Said at once, so that a long import need not end for it to be known.
    private func refuse(_ problem: ImportError) {
        progress.interrupt { run.console.note("\(path): \(problem)") }
        report.refuse(problem)
    }
}

/// What became of an import.
struct ImportReport {
    /// Refused lines that are listed in it; of the others there is the number.
    static let mostListed = 10_000

    let isDry: Bool
    var taken = 0
    var present = 0
    private(set) var refused = 0
    private var listed: [ImportError] = []
    var seconds = 0.0

    init(isDry: Bool) { self.isDry = isDry }

    mutating func refuse(_ problem: ImportError) {
        refused += 1
        if listed.count < ImportReport.mostListed { listed.append(problem) }
    }

    var text: String {
        let verb = isDry ? "would take" : "took"
        let rate = seconds > 0 ? Int(Double(taken + present + refused) / seconds) : 0
        let pace = "\(ImportProgress.text(seconds)), \(rate) rows/s"
        return "\(verb) \(taken), already there \(present), refused \(refused); \(pace)"
    }

    var json: JSONValue {
        [
            "dry_run": .bool(isDry), "taken": .integer(Int64(taken)), "present": .integer(Int64(present)),
            "refused": .integer(Int64(refused)), "seconds": .decimal(seconds),
            "problems": .array(
                listed.map {
                    [
                        "line": .integer(Int64($0.line)), "column": .optional($0.column?.rawValue),
                        "reason": .string($0.reason),
                    ]
                }),
        ]
    }
}

/// A line on a terminal with the progress and the rate of an import; nothing if there is no terminal. Many
/// threads update the counts.
final class ImportProgress: Sendable {
    private let console: Console
    private let began = SystemMonotonicClock().nanoseconds
    private let bytes = Atomic(0)
    private let expected = Atomic(0)
    private let rows = Atomic(0)
    private let shown = Atomic<UInt64>(0)

    init(_ console: Console) { self.console = console }

    /// Of a file that has a size; a pipe has none.
    func expect(bytesOf file: Int32) {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        expected.store(Int(status.st_size), ordering: .relaxed)
    }

    func read(_ count: Int) { bytes.add(count, ordering: .relaxed) }

    /// One row more.
    func countRow() {
        rows.add(1, ordering: .relaxed)
        let now = SystemMonotonicClock().nanoseconds
        let last = shown.load(ordering: .relaxed)
        // Five times a second, by whichever thread comes first.
        guard console.isErrorTerminal, now &- last > 200_000_000,
            shown.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
        else { return }
        console.replaceLine(line)
    }

    /// Something else is said; the line gives way.
    func interrupt(_ say: () -> Void) {
        if console.isErrorTerminal { console.replaceLine("") }
        say()
    }

    func end() { if console.isErrorTerminal { console.replaceLine("") } }

    var seconds: Double { Double(SystemMonotonicClock().nanoseconds &- began) / 1e9 }

    static func text(_ seconds: Double) -> String { "\(Int(seconds)).\(Int(seconds * 10) % 10) s" }

    private var line: String {
        let count = rows.load(ordering: .relaxed)
        let rate = seconds > 0 ? Int(Double(count) / seconds) : 0
        let (done, all) = (bytes.load(ordering: .relaxed), expected.load(ordering: .relaxed))
        guard all > 0 else { return "\(count) rows, \(rate) a second" }
        let share = min(done * 20 / all, 20)
        let bar = String(repeating: "#", count: share) + String(repeating: ".", count: 20 - share)
        return "[\(bar)] \(min(done * 100 / all, 100)) % read, \(count) rows, \(rate) a second"
    }
}
