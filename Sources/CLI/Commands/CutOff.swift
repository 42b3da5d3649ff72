import CountersignAuthority
import CountersignGate
import CountersignWire

/// The callers that a command cuts off at once.
struct CutOff {
    /// Days of the meter that are counted.
    static let days: Int64 = 30

    let releases: Int
    let sessions: Int
    /// Of the last ``days`` days.
    let requests: Int64

    /// `releases` at this moment.
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
        .flag("dry-run", meaning: "print the number of those that would be cut off, and change nothing"),
    ]
}

extension Invocation {
    /// Whether to do what cuts these callers off. At a terminal a person is asked; without one the command
    /// goes on, and the number is on standard error. False for `--dry-run`, after it was printed.
    func isToCutOff(_ cutOff: CutOff, by command: String) throws(OperationalError) -> Bool {
        if arguments.has("dry-run") {
            try print(["cut_off": cutOff.json]) { "\(command) would cut off \(cutOff.text)" }
            return false
        }
        let sentence = "\(command) cuts off \(cutOff.text)"
        guard !arguments.has("yes"), let typed = try console.ask("\(sentence). Type yes to go on: ") else {
            console.note("note: \(sentence)")
            return true
        }
        guard typed == "yes" else {
            throw OperationalError(.failed, message: "\(command): not confirmed; nothing done")
        }
        return true
    }
}
