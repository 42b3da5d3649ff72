import CountersignAuthority
import CountersignGate
import CountersignWire

/// Checks the settings that all gateways over one store must have in common.
extension Doctor {
    mutating func checkNodes(of deployment: Deployment) {
        guard configuration.store.isShared, let roster = try? deployment.store.nodes() else { return }
        let count = findings.count
        let own = Node(
            id: "", name: "", replayGuard: configuration.nodeReplayGuard.text, lease: 0,
            settings: configuration.sharedSettings)
        for difference in roster.nodes.filter(\.isLive).flatMap(own.differences) {
            add(
                .nodes, verdict: .error, message: difference.text, expected: "the same at all nodes",
                command: ownCommand("nodes"))
        }
        for disagreement in roster.disagreements {
            add(
                .nodes, verdict: .error, message: disagreement.text, expected: "one value",
                command: ownCommand("nodes"))
        }
        for node in roster.nodes where !node.refusal.isEmpty {
            add(
                .nodes, verdict: .warning,
                message: "a start of node \(node.name) was refused: \(node.refusal)",
                expected: "the same at all nodes", command: ownCommand("nodes"))
        }
        if findings.count == count {
            add(.nodes, message: "\(roster.nodes.count(where: \.isLive)) live nodes have the same settings")
        }
    }

    /// Checks whether requests are refused because the replay guard may have lost some.
    mutating func checkReplay(of deployment: Deployment) {
        let floor: Int64?
        if configuration.replay.isFile {
            floor = (try? ReplayStatus(path: deployment.folder.replay, now: now))?.floor
        } else {
            floor = (try? ReplayService.sharedFloor(of: deployment)) ?? nil
        }
        if let warning = floor.flatMap({ ReplayService.warning(ofFloor: $0, at: now) }) {
            add(
                .replay, verdict: .warning, message: warning,
                expected: "a floor in the past; it passes by itself")
        }
    }
}
