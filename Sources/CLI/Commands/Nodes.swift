import CountersignAuthority
import CountersignServer
import CountersignWire

extension Command {
    static let nodes = Command(
        words: ["nodes"], summary: "list the gateways that share a PostgreSQL database",
        options: [.data, .json],
        notes: """
            A node is `live` while its lease lasts, `behind` if it does not follow the last change yet,
            `starting` before it serves, and `lapsed` once the database has not seen it for longer than its
            lease. A lapsed node refuses requests of sessions, and changes do not wait for it. `refused` is a
            start that failed because a live node had another value of a setting that all nodes must have in
            common. The list omits nodes that were shut down, and keeps killed and refused ones for ten
            minutes. Below the list are the settings that have more than one value among the live nodes, and
            the time until which signatures are refused because the shared replay guard may have lost
            requests.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let listing = try deployment.store.nodes()
        let floor = try ReplayService.sharedFloor(of: deployment) ?? 0
        let warning = ReplayService.warning(ofFloor: floor, at: run.now)
        let disagreements = listing.disagreements
        try run.print([
            "change": .integer(listing.change),
            "nodes": .array(listing.nodes.map { $0.json(at: listing.change) }),
            "differences": .array(disagreements.map(\.json)),
            "replay_floor": warning == nil ? .null : .integer(floor),
        ]) {
            let warnings = [warning].compactMap(\.self)
            if listing.nodes.isEmpty { return (["no nodes"] + warnings).joined(separator: "\n") }
            let table = Table.text(
                head: ["NODE", "NAME", "STATE", "SEEN", "CHANGE", "CLOCK", "LEVEL"],
                rows: listing.nodes.map { node in
                    [
                        node.id, node.name, node.state(at: listing.change), "\(node.silence) ms ago",
                        node.isStarting ? "–" : "\(node.applied) of \(listing.change)",
                        "\(node.clockOffset) ms", "\(node.level)",
                    ]
                })
            let refusals = listing.nodes.filter { !$0.refusal.isEmpty }.map {
                "\($0.name) was refused: \($0.refusal)"
            }
            return ([table] + disagreements.map(\.text) + refusals + warnings).joined(separator: "\n")
        }
        return .success
    }

    static let nodesRejectReport = Command(
        words: ["nodes", "reject-report"],
        summary: "use the database again that a node of a copy has reported to be an earlier one",
        options: [
            .flag(
                "yes",
                meaning: "the data folder that the error names belongs to a copy, such as a test system"),
            .data, .json,
        ],
        notes: """
            A gateway whose data folder has followed later changes than the database has reports that to all
            gateways, and they refuse all requests. If the data folder belongs to a copy of the deployment,
            such as a test system that was made from a dump, the report is wrong. Run this command with the
            data folder of a gateway that has served: it verifies that the database has all changes which that
            folder has followed. Then the gateways serve again within seconds, and sessions go on. If the
            database was put back to an earlier copy, run `countersign restore --in-place` instead.
            """
    ) { (run) throws(OperationalError) in
        guard run.arguments.has("yes") else {
            throw OperationalError(
                .usage,
                message: "if the data folder that the error names belongs to a copy of this deployment, add "
                    + "--yes")
        }
        let report = try run.configuration().rejectReport(
            environment: run.environment.variables, at: run.now)
        try run.print(["reporter": .string(report.reporter)]) {
            "rejected the report of \(report.reporter); the gateways serve again"
        }
        return .success
    }

    static let nodesChange = Command(
        words: ["nodes", "change"],
        summary: "let nodes start with a new value of a setting that all nodes must have in common",
        options: [
            .list(
                "set", placeholder: "NAME=VALUE",
                meaning: "a setting of `serve` that all nodes must have in common"),
            .data, .json,
        ],
        notes: """
            Run this command first, and then restart the nodes with the new value, one after the other. Until
            the last node has it, `countersign nodes` shows which node has which value. A node cannot start
            with a value that is neither announced nor that of the live nodes. This command cannot change
            --replay, because each of two replay guards would admit the same request: stop all nodes, and
            start them with the new value. If no node is live, a node can start with any value. The command
            can change:

            """
                + Setting.all.filter { $0.scope == .deployment }.map { "  --\($0.name)" }
                .joined(separator: "\n")
    ) { (run) throws(OperationalError) in
        let assignments = run.arguments.values("set")
        guard !assignments.isEmpty else {
            throw OperationalError(.usage, message: "expected --set NAME=VALUE")
        }
        var next = SharedSettings()
        for assignment in assignments {
            let (name, value) = try Setting.sharedValue(assignment)
            next.values[name] = value
        }
        let deployment = try run.deployment()
        try deployment.announce(next)
        let waiting = try deployment.store.nodes().nodes.filter { node in
            node.isLive && next.values.contains { node.settings.values[$0.key] != $0.value }
        }
        try run.print([
            "settings": .object(next.values.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }),
            "nodes": .array(waiting.map { .string($0.name) }),
        ]) {
            let names = waiting.map(\.name).joined(separator: ", ")
            return waiting.isEmpty
                ? "no live node has another value; nodes can start with the new one"
                : "restart these nodes with the new value, one after the other: \(names)"
        }
        return .success
    }
}

extension Setting {
    /// The name and the value of `NAME=VALUE`, in the form in which nodes compare them.
    fileprivate static func sharedValue(_ assignment: String) throws(OperationalError) -> (String, String) {
        guard let sign = assignment.firstIndex(of: "=") else {
            throw OperationalError(.usage, message: "--set `\(assignment)`: expected NAME=VALUE")
        }
        let name = String(assignment[..<sign])
        guard let setting = all.first(where: { $0.name == name }), setting.scope != .node else {
            throw OperationalError(
                .usage, message: "--set `\(name)`: expected a setting that all nodes must have in common")
        }
        guard setting.scope == .deployment else {
            throw OperationalError(
                .failed,
                message: "--\(name) changes only while no node runs: stop all nodes, and start them with the "
                    + "new value")
        }
        guard let value = setting.sharedText(parsing: String(assignment[assignment.index(after: sign)...]))
        else {
            throw OperationalError(.usage, message: "--set \(name): expected \(setting.expected)")
        }
        return (name, value)
    }
}

extension NodeDisagreement {
    fileprivate var json: JSONValue {
        [
            "setting": .string(setting),
            "values": .array(
                values.map { ["value": .string($0.value), "nodes": .array($0.nodes.map { .string($0) })] }),
        ]
    }
}

extension Node {
    fileprivate func state(at change: Int64) -> String {
        guard refusal.isEmpty else { return "refused" }
        guard isLive else { return "lapsed" }
        if isStarting { return "starting" }
        return applied < change ? "behind" : "live"
    }

    fileprivate func json(at change: Int64) -> JSONValue {
        [
            "id": .string(id), "name": .string(name), "state": .string(state(at: change)),
            "silence_ms": .integer(silence), "lease_ms": .integer(lease),
            "change": isStarting ? .null : .integer(applied),
            "clock_offset_ms": .integer(clockOffset), "replay_guard": .string(replayGuard),
            "level": .integer(level), "next_master_key": .optional(masterKey?.next),
            "refusal": refusal.isEmpty ? .null : .string(refusal),
        ]
    }
}
