import CountersignAuthority
import CountersignBenchmarks
import CountersignCLI
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation

extension Command {
    static let benchFill = Command(
        .benchFill,
        options: [
            .value(
                "in", placeholder: "DIR",
                meaning: "the data folder to make, which is absent or empty; the store is SQLite"),
            .value("count", placeholder: "N", meaning: "how many sessions, of an account each (1000)"),
            .value(
                "key-ids", placeholder: "FILE",
                meaning: "where to write the key ids of the sessions, one in a line"),
            .json,
        ],
        notes: """
            For load generators, and never for people: one key signs the requests of all sessions, and it is \
            printed. Therefore the deployment is always a new one. `countersign migrate` moves it to \
            PostgreSQL. script/bench cluster measures so.
            """
    ) { (run) throws(OperationalError) in
        let count = try run.count("count", among: 1...10_000_000, default: 1_000)
        let folder = try run.requiredOption("in")
        let list = try run.requiredOption("key-ids")
        let present = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        guard present.isEmpty else {
            throw OperationalError(
                .failed, message: "\(folder): expected an empty folder, which gets a new deployment")
        }
        let data = try DataFolder(folder, absence: .create)
        let deployment = try Deployment(
            folder: data, store: StorePlace.sqlite(path: data.database).open(), environment: [:])
        defer { deployment.store.close() }
        let bench = try SessionBench(deployment, at: run.now) {
            StorePlace.sqlite(path: data.database).open(inspecting: $0, authenticatingBy: deployment.rows)
        }
        let fill = try bench.fill(sessions: count) { run.console.note("bench: \($0)") }
        let lines = fill.keyIDs.map { $0 + "\n" }.joined()
        guard
            FileManager.default.createFile(
                atPath: list, contents: Data(lines.utf8), attributes: [.posixPermissions: 0o600])
        else { throw Errno.error("\(list): cannot write") }
        let key = fill.requestKey.withExposedBytes { Base64.encode($0, as: .url) }
        try run.print([
            "sessions": .integer(Int64(fill.keyIDs.count)), "release": .string(fill.release.description),
            "request_key": .string(key),
        ]) {
            "\(fill.keyIDs.count) sessions of the release \(fill.release); "
                + "their requests are signed with \(key)"
        }
        return .success
    }

    static let benchClients = Command(
        .benchClients,
        options: [
            .value("count", placeholder: "N", meaning: "how many clients, of an account each (100)"),
            .value("first", placeholder: "N", meaning: "the number of the first account (0)"),
            .value("app", placeholder: "APP", meaning: "the app that they sign in to"),
            .value("release", placeholder: "KEY_ID", meaning: "the release whose key signs the requests"),
        ],
        notes: """
            For each of the steps \(LoginClients.Step.allCases.map(\.rawValue).joined(separator: ", ")): \
            prints the body of each client's request in a line, and reads the body of the response to each \
            from a line of standard input, in the same order. It ends with status 1 where a response is not \
            what the step requires. Another program signs the requests and sends them. The clients stretch \
            their passwords as little as possible. script/bench cluster measures so.
            """
    ) { (run) throws(OperationalError) in
        let count = try run.count("count", among: 1...1_000_000, default: 100)
        let app = try AppName(argument: try run.requiredOption("app"))
        let first = try run.count("first", among: 0...1_000_000_000, default: 0)
        var clients = try LoginClients(
            count, from: first, of: app, release: try run.requiredOption("release"))
        for step in LoginClients.Step.allCases {
            let requests = try clients.requests(of: step, at: run.now)
            try run.console.write(Array(requests.map { $0.text + "\n" }.joined().utf8))
            var responses: [String] = []
            while responses.count < count, let line = readLine() { responses.append(line) }
            try clients.take(responses, to: step)
        }
        return .success
    }
}
