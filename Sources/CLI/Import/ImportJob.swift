import CountersignAuthority
import CountersignWire
import Glibc

/// Reads the file of an import piece by piece, hands on what it holds in batches, and keeps count. What is held at any time is
/// a piece, a line and a batch, however large the file.
final class ImportJob {
    private let run: Invocation
    private let accounts: AccountImport
    private let path: String
    private let isDry: Bool
    private var waiting: [ImportedAccount] = []
    private var report: ImportReport
    private let progress: ImportProgress

    init(_ run: Invocation, _ accounts: AccountImport, _ path: String, isDry: Bool) {
        self.run = run
        self.accounts = accounts
        self.path = path
        self.isDry = isDry
        report = ImportReport(isDry: isDry)
        progress = ImportProgress(run.console)
        waiting.reserveCapacity(AccountImport.batch)
    }

    func read() throws(Fault) -> ImportReport {
        let file = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw SystemProblem.fault("\(path): cannot open", .usage) }
        defer { if path != "-" { close(file) } }
        progress.expect(bytesOf: file)
        var piece = try next(from: file)
        var reader = ImportReader(try format(of: piece))
        while !piece.isEmpty {
            try feed(&reader, piece)
            progress.read(piece.count)
            piece = try next(from: file)
        }
        var lines: [ImportReader.Line] = []
        do throws(ImportProblem) { try reader.finish { lines.append($0) } } catch { throw unreadable(error) }
        try take(lines)
        try flush()
        progress.end()
        report.seconds = progress.seconds
        return report
    }

    private func next(from file: Int32) throws(Fault) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemProblem.fault("\(path): cannot read") }
            return Array(piece[..<count])
        }
    }

    /// JSON lines begin with a brace, and no CSV header does.
    private func format(of first: [UInt8]) throws(Fault) -> ImportReader.Format {
        switch run.arguments.value("format") {
        case "csv": return .csv
        case "json": return .jsonLines
        case nil:
            let text = first.starts(with: [0xEF, 0xBB, 0xBF]) ? first.dropFirst(3) : first[...]
            return text.first == UInt8(ascii: "{") ? .jsonLines : .csv
        case let other?: throw Fault(.usage, "--format `\(other)`: expected csv or json")
        }
    }

    private func feed(_ reader: inout ImportReader, _ piece: [UInt8]) throws(Fault) {
        var lines: [ImportReader.Line] = []
        do throws(ImportProblem) { try reader.feed(piece.span) { lines.append($0) } } catch { throw unreadable(error) }
        try take(lines)
    }

    private func unreadable(_ problem: ImportProblem) -> Fault { Fault(.failed, "\(path): \(problem)") }

    private func take(_ lines: [ImportReader.Line]) throws(Fault) {
        for line in lines {
            switch line {
            case .problem(let problem): refuse(problem)
            case .account(let account):
                waiting.append(account)
                if waiting.count == AccountImport.batch { try flush() }
            }
        }
    }

    private func flush() throws(Fault) {
        guard !waiting.isEmpty else { return }
        let (batch, accounts, now, progress) = (waiting, accounts, run.now, progress)
        waiting.removeAll(keepingCapacity: true)
        let outcome: AccountImport.Outcome
        if isDry {
            outcome = try accounts.check(batch)
        } else {
            outcome = try Waiting.run { () throws(Fault) in
                try await accounts.add(batch, at: now) { progress.wrapped() }
            }
        }
        report.taken += outcome.taken
        report.present += outcome.present
        for problem in outcome.problems { refuse(problem) }
    }

    /// Said at once, so that a long import need not end for it to be known.
    private func refuse(_ problem: ImportProblem) {
        progress.interrupt { run.console.note("\(path): \(problem)") }
        report.refuse(problem)
    }
}
