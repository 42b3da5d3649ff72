import CountersignAuthority
import CountersignWire

extension Command {
    static let nodes = Command(
        words: ["nodes"], summary: "list the gateways that share a PostgreSQL database",
        options: [.data, .json],
        notes: """
            A node is `live` while its lease lasts, `behind` if it does not follow the last change yet, and
            `lapsed` once the database has not seen it for longer than its lease: then it refuses requests of
            sessions, and changes do not wait for it. A node that was stopped in order is not listed; one that
            was killed is, for ten minutes.
            """
    ) { (run) throws(OperationalError) in
        let listing = try run.deployment().store.nodes()
        try run.print([
            "change": .integer(listing.change),
            "nodes": .array(listing.nodes.map { $0.json(at: listing.change) }),
        ]) {
            if listing.nodes.isEmpty { return "no nodes" }
            return Table.text(
                head: ["NODE", "NAME", "STATE", "SEEN", "CHANGE", "CLOCK", "LEVEL"],
                rows: listing.nodes.map { node in
                    [
                        node.id, node.name, node.state(at: listing.change), "\(node.silence) ms ago",
                        "\(node.applied) of \(listing.change)", "\(node.clockOffset) ms",
                        "\(node.level)",
                    ]
                })
        }
        return .success
    }
}

extension Node {
    fileprivate func state(at change: Int64) -> String {
        guard isLive else { return "lapsed" }
        return applied < change ? "behind" : "live"
    }

    fileprivate func json(at change: Int64) -> JSONValue {
        [
            "id": .string(id), "name": .string(name), "state": .string(state(at: change)),
            "silence_ms": .integer(silence), "lease_ms": .integer(lease), "change": .integer(applied),
            "clock_offset_ms": .integer(clockOffset), "replay_guard": .string(replayGuard),
            "level": .integer(level), "next_master_key": .optional(masterKey?.next),
        ]
    }
}
