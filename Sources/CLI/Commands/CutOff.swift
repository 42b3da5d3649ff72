import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

/// The callers that a command cuts off at once.
struct CutOff {
    /// Days of the meter that are counted.
    static let days: Int64 = 30

    let releases: Int
    let sessions: Int
    /// Requests in the last ``days`` days.
    let requests: Int64

    /// Counts the callers of `releases` now.
    init(_ releases: [Release], in deployment: Deployment, at now: Int64) throws(OperationalError) {
        self.releases = releases.count
        let ids = Set(releases.map(\.id))
        var sessions = 0
        for app in Set(releases.map(\.app)) {
            let idle = try deployment.app(app).policy().sessionIdle
            for group in try deployment.store.liveSessions(of: app, usedSince: now - idle) {
                if let id = group.release, ids.contains(id) { sessions += group.count }
            }
        }
        self.sessions = sessions
        let names = Set(ids.map(\.description))
        requests = try deployment.store.meter(since: now / 86_400 - CutOff.days + 1)
            .filter { names.contains($0.subject.release) && $0.subject.outcome.countsAsAdmitted }
            .reduce(0) { $0 + $1.count }
    }

    var text: String {
        "\(releases) live releases with \(sessions) live sessions and \(requests) requests in the last "
            + "\(CutOff.days) days"
    }

    var json: JSONValue {
        [
            "releases": .integer(Int64(releases)), "sessions": .integer(Int64(sessions)),
            "requests": .integer(requests),
        ]
    }
}

extension Option {
    /// The options of commands that cut callers off.
    static let cutOff: [Option] = [
        .flag("yes", meaning: "do not ask at a terminal"),
        .flag("dry-run", meaning: "print the number of callers that would be cut off, and change nothing"),
    ]
}

extension Invocation {
    /// Whether to run a command that cuts these callers off. At a terminal, asks for confirmation. Without a
    /// terminal, prints the number to standard error and returns true. For `--dry-run`, prints the number and
    /// returns false.
    func isToCutOff(_ cutOff: CutOff, by command: String) throws(OperationalError) -> Bool {
        if arguments.has("dry-run") {
            try print(["cut_off": cutOff.json]) { "\(command) would cut off \(cutOff.text)" }
            return false
        }
        let sentence = "\(command) cuts off \(cutOff.text)"
        guard !arguments.has("yes"), let typed = try console.ask("\(sentence). Type yes to continue: ") else {
            console.note("note: \(sentence)")
            return true
        }
        guard typed == "yes" else {
            throw OperationalError(.failed, message: "\(command): not confirmed; nothing done")
        }
        return true
    }
}
