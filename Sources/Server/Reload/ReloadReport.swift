import CountersignAuthority
import CountersignWire

/// What a reload did: either all of it, or nothing because of problems.
package struct ReloadReport: Sendable, Equatable {
    /// Settings whose value is another one than that of the running server.
    package var changes: [SettingChange] = []
    /// Paths that were read or opened again: certificates, keys, the log.
    package var files: [String] = []
    /// Event loops that had not come to taking the settings when the report was made.
    package var lateLoops = 0
    /// Not empty if nothing was applied.
    package var problems: [ConfigurationProblem]
    /// Changes, files and problems that were left out for the length of the report.
    package var omitted = 0

    package var isApplied: Bool { problems.isEmpty }

    static func refused(_ message: String) -> ReloadReport {
        refused([ConfigurationProblem(message: message, origin: nil)])
    }

    /// A report of bounded size: the settings file may be large, and wrong in each of its lines.
    static func refused(_ problems: [ConfigurationProblem]) -> ReloadReport {
        var shown: [ConfigurationProblem] = []
        var count = 0
        for var problem in problems {
            if problem.message.utf8.count > mostMessageBytes {
                // Not by characters, of which one may have any number of combining marks.
                let shown = problem.message.unicodeScalars.prefix(mostMessageBytes / 4)
                problem.message = "\(String(shown))…"
            }
            count += problem.message.utf8.count
            guard shown.isEmpty || count <= mostProblemBytes else { break }
            shown.append(problem)
        }
        return ReloadReport(problems: shown, omitted: problems.count - shown.count)
    }

    private static let mostMessageBytes = 4_000
    private static let mostProblemBytes = 8_000

    /// One line for the log.
    var line: String {
        guard isApplied else {
            return "nothing was applied: \(shownProblems.map(\.text).joined(separator: "; "))"
        }
        let applied = changes.filter { !$0.needsRestart }.map(\.text)
        let waiting = changes.filter(\.needsRestart).map(\.text)
        var parts = applied.isEmpty ? ["no setting to apply"] : ["applied \(applied.joined(separator: ", "))"]
        if !waiting.isEmpty { parts.append("for a restart \(waiting.joined(separator: ", "))") }
        if !files.isEmpty { parts.append("read again \(files.joined(separator: ", "))") }
        return (parts + lateness).joined(separator: "; ")
    }

    /// `1 event loop is busy and takes the settings later`, if there is one.
    private var lateness: [String] {
        switch lateLoops {
        case 0: []
        case 1: ["1 event loop is busy and takes the settings later"]
        default: ["\(lateLoops) event loops are busy and take the settings later"]
        }
    }

    /// `and 3 more; the log names all`, if something was left out. The log has no more of the problems than a
    /// report has.
    private var omission: [String] {
        guard omitted > 0 else { return [] }
        let place = isApplied ? "the log names" : "`countersign serve --check-config` shows"
        return ["and \(omitted) more; \(place) all"]
    }

    /// The problems, and as the last one that there are more.
    private var shownProblems: [ConfigurationProblem] {
        isApplied ? [] : problems + omission.map { ConfigurationProblem(message: $0, origin: nil) }
    }

    /// For people, a line for each setting, file or problem.
    package var text: String {
        guard isApplied else {
            return (shownProblems.map(\.text) + ["nothing was applied; the server goes on as before"])
                .joined(separator: "\n")
        }
        var lines = changes.filter { !$0.needsRestart }.map { "applied: \($0.text)" }
        lines += changes.filter(\.needsRestart).map { "needs a restart: \($0.text)" }
        lines += files.map { "read again: \($0)" }
        if changes.isEmpty, omitted == 0 { lines.append("no setting has changed") }
        return (lines + omission + lateness).joined(separator: "\n")
    }

    package var json: JSONValue {
        [
            "applied": .bool(isApplied),
            "changes": .array(changes.map(\.json)), "read_again": .strings(files),
            "late_loops": .integer(Int64(lateLoops)), "problems": .array(shownProblems.map(\.json)),
            "omitted": .integer(Int64(omitted)),
        ]
    }
}

extension SettingChange {
    /// `limit-head 16384 -> 8192`.
    fileprivate var text: String { "\(name) \(old.isEmpty ? "-" : old) -> \(new.isEmpty ? "-" : new)" }

    fileprivate var json: JSONValue {
        [
            "setting": .string(name), "old": .string(old), "new": .string(new),
            "needs_restart": .bool(needsRestart),
        ]
    }
}

/// The report on its way through the control socket, whose messages are short: the status, then the text for
/// people and the JSON text in parts, then `end`. One report is at most ``mostMessages`` messages, which fit
/// into the socket's buffer: a client that does not read does not stop the server.
extension ReloadReport {
    private static let partBytes = 480
    private static let mostMessages = 128

    /// Sends it, with fewer changes, files and problems if all would be too many messages.
    func send(over connection: ControlConnection) throws(OperationalError) {
        for message in bounded.messages { try connection.send(message) }
    }

    /// As much of it as fits, and the number of what does not.
    var bounded: ReloadReport {
        var report = self
        while report.messages.count > ReloadReport.mostMessages, !report.isMinimal { report.shorten() }
        return report
    }

    private var isMinimal: Bool { changes.isEmpty && files.isEmpty && problems.count <= 1 }

    private mutating func shorten() {
        let count = problems.count + files.count + changes.count
        defer { omitted += count - problems.count - files.count - changes.count }
        if problems.count > 1 { problems.removeLast(problems.count / 2) }
        files.removeLast(files.count - files.count / 2)
        changes.removeLast(changes.count - changes.count / 2)
    }

    /// A line feed ends each part's header: a combining character after a space would form one `Character`
    /// with it, and `hasPrefix` would fail.
    private var messages: [String] {
        ["reloaded \(isApplied ? "applied" : "refused")"]
            + ReloadReport.parts(of: text).map { "text\n\($0)" }
            + ReloadReport.parts(of: json.prettyText).map { "json\n\($0)" } + ["end"]
    }

    /// Pieces of at most ``partBytes`` bytes, cut between characters' scalars.
    private static func parts(of text: String) -> [String] {
        var parts: [String] = []
        var part = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            let width = UTF8.width(scalar)
            if count + width > partBytes {
                parts.append(String(part))
                part = String.UnicodeScalarView()
                count = 0
            }
            part.append(scalar)
            count += width
        }
        if count > 0 { parts.append(String(part)) }
        return parts
    }
}

/// Makes a running server reload its settings.
package struct ReloadRequest {
    /// Milliseconds that a server has to read its files, and to resolve the name of a new backend.
    private static let patience = 60_000
    private let folder: DataFolder

    package init(_ folder: DataFolder) { self.folder = folder }

    /// What the server did, for people and as JSON.
    package func run() throws(OperationalError) -> (isApplied: Bool, text: String, json: String) {
        guard let connection = try ControlConnection(to: folder) else {
            throw OperationalError(
                .unreachable, message: "no server runs on \(folder.path); `countersign serve` starts one")
        }
        try connection.send("reload")
        var (isApplied, text, json) = (false, "", "")
        while true {
            let message = try connection.expect(within: ReloadRequest.patience).message
            if message == "end" { return (isApplied, text, json) }
            let value = String(message.dropFirst(5))
            if message.hasPrefix("text\n") {
                text += value
            } else if message.hasPrefix("json\n") {
                json += value
            } else if message.hasPrefix("reloaded ") {
                isApplied = message == "reloaded applied"
            } else {
                throw OperationalError(
                    .failed,
                    message: message.hasPrefix("failed ") ? String(message.dropFirst(7)) : message)
            }
        }
    }
}
