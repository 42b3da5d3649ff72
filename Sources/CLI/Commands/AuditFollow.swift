import CountersignAuthority
import CountersignThreads
import CountersignTransport
import CountersignWire
import Glibc

/// Prints audit records as they are made, until it is interrupted: a table for people, or a JSON object a
/// line.
struct AuditFollower {
    /// Records that are read at once.
    static let pageCount = 500

    let console: Console
    let isJSON: Bool
    private var hasHead = false

    init(console: Console, isJSON: Bool) {
        self.console = console
        self.isJSON = isJSON
    }

    mutating func show(_ lines: [AuditLine]) throws(OperationalError) {
        guard !isJSON else {
            for line in lines { try console.print(line.json.text) }
            return
        }
        if !hasHead {
            hasHead = true
            try console.print(Table.text(head: AuditLine.head, rows: lines.map(\.cells)))
        } else if !lines.isEmpty {
            // As wide as they are: what comes later is not known.
            for line in lines { try console.print(line.cells.joined(separator: "  ")) }
        }
    }
}

extension Invocation {
    /// Shows `rows`, and then each record of this deployment that is added.
    func followAudit(from rows: [AuditRow], in deployment: Deployment) throws(OperationalError) -> Never {
        var follower = AuditFollower(console: console, isJSON: arguments.has("json"))
        var rows = rows
        // Behind the log's end, as long as there is no record.
        var last: Int64 = rows.isEmpty ? try deployment.store.auditEnd().last : 0
        while true {
            let names = try deployment.names(in: rows)
            try follower.show(rows.map { AuditLine($0, names: names) })
            last = rows.last?.number ?? last
            if rows.count < AuditFollower.pageCount { sleep(1) }
            rows = try deployment.store.auditRows(after: last, limit: AuditFollower.pageCount)
        }
    }
}

extension RemoteServer {
    /// Seconds that a call waits at the server for a record.
    private static let patience = 20

    /// The same of a server's deployment: each call waits there until there is a record.
    func followAudit(_ arguments: Arguments, console: Console) throws(OperationalError) -> Never {
        var follower = AuditFollower(console: console, isJSON: arguments.has("json"))
        let after = arguments.value("after").map { "?after=\($0)&limit=" } ?? "?limit="
        var target = "\(after)\(arguments.value("last") ?? "50")"
        var last: Int64?
        while true {
            let lines = try auditLines(at: target)
            try follower.show(lines)
            last = lines.last?.number ?? last
            if let last {
                target = "?after=\(last)&limit=\(AuditFollower.pageCount)&wait=\(RemoteServer.patience)"
            } else {
                // An empty log, or nothing behind the record that was named.
                target = "?after=\(arguments.value("after") ?? "0")&wait=\(RemoteServer.patience)"
            }
        }
    }

    private func auditLines(at query: String) throws(OperationalError) -> [AuditLine] {
        let document = try BlockingTask.run { () async throws(OperationalError) in
            try await get("\(APIOperation.prefix)/audit\(query)")
        }
        guard let records = document.root["records"]?.elements else {
            throw OperationalError(.failed, message: "\(origin): the answer has no records")
        }
        return records.map { AuditLine($0, of: document) }
    }
}
