import CountersignAuthority
import CountersignReplay
import CountersignWire
import Glibc

/// The settings that a node must have in common with the others, and the steps that ensure it.
struct NodeTerms {
    var settings = SharedSettings()
    /// The process that this one replaces on the same data folder. It may still have the former values.
    var predecessor: String?
    /// The settings, as stored.
    var record: () throws(OperationalError) -> SharedSettingsRecord = { SharedSettingsRecord() }
    /// The name of the replay guard for other nodes (``NodeReplayGuard``).
    var replayGuard: () -> String = { "" }
    /// Takes the deployment back from another replay guard that was used in the meantime.
    var reclaim: () throws(OperationalError) -> Void = {}

    /// Whether the live node `other` has a value that keeps `node` from entering.
    func conflict(of node: Node, with other: Node, under record: SharedSettingsRecord) -> Bool {
        other.id != predecessor
            && node.differences(from: other).contains { !record.permits($0) }
    }

    static func message(_ differences: String) -> String {
        "\(differences); expected the same at all live nodes (docs/operate/nodes.md, \"Changing a setting of "
            + "all nodes\")"
    }
}

extension Deployment {
    /// Records the shared settings that a server starts with, and logs new values.
    func adopt(_ configuration: Configuration, log: EventLog?) throws(OperationalError) {
        let own = configuration.sharedSettings
        for (name, former) in try adopt(own, beside: store.nodes().nodes).sorted(by: { $0.key < $1.key }) {
            log?.note(
                subject: "nodes",
                message: "--\(name) is `\(own.values[name] ?? "")` now; it was `\(former)` at the last start")
        }
    }
}

extension Configuration {
    /// The machine's name, for people.
    static var machine: String {
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, host.count - 1)
        return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The replay guard's name for other nodes. Nodes share a replay file if it is the same file. A shared
    /// guard itself states which server it uses, once it is open.
    var nodeReplayGuard: NodeReplayGuard {
        if let shared = replay.shared { return NodeReplayGuard(kind: shared.rawValue) }
        var file = stat()
        stat("\(data)/replay", &file)
        return NodeReplayGuard(
            kind: "file", place: "\(Configuration.machine) \(file.st_dev) \(file.st_ino)")
    }
}
