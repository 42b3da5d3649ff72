import CountersignAuthority
import CountersignGate
import CountersignWire

/// The replay file as a server or an administrative command opens it, and the server's periodic maintenance
/// of it.
package final class ReplayService {
    package let file: ReplayFile
    private let deployment: Deployment
    private let keys: ReleaseKeyDirectory
    private let log: EventLog?
    /// The deployment's generation at the last look at the store.
    private var seenGeneration: UInt64?
    private var reportedFloor: Int64?

    /// For a command. Fails where another process has the file open.
    package convenience init(_ deployment: Deployment, keys: ReleaseKeyDirectory) throws(OperationalError) {
        try self.init(deployment, keys: keys, log: nil)
    }

    /// For a server. Fails if another process has the file open and does not share it.
    init(
        _ deployment: Deployment, keys: ReleaseKeyDirectory, log: EventLog?,
        sharing: ReplayFileHandover? = nil
    ) throws(OperationalError) {
        (self.deployment, self.keys, self.log) = (deployment, keys, log)
        let remembered = try deployment.store.value(of: .replayFile).flatMap {
            ReplayFileID(String(decoding: $0, as: UTF8.self))
        }
        var settings = ReplayFile.Settings()
        settings.window = ReplayService.window(keys)
        settings.lifetime = keys.longestLifetime
        file = try ReplayFile(
            path: deployment.folder.replay, expecting: remembered, settings: settings,
            refused: deployment.replayConfirmation()?.refused ?? TimeIntervals(), handover: sharing,
            now: SystemTime().now)
        if remembered != file.report.id {
            try deployment.store.set(.replayFile, to: Array(file.report.id.description.utf8))
        }
        if let floor = file.report.floor, file.report.condition != .intact {
            log?.note(
                subject: "replay",
                message: "\(file.report.condition.rawValue); signatures made up to \(floor) are refused")
        }
    }

    /// Adapts the file to the policies and the clock. Call from a timer.
    func runMaintenance(at now: Int64) throws(OperationalError) {
        try file.setWindow(ReplayService.window(keys), lifetime: keys.longestLifetime, now: now)
        try takeConfirmation(at: now)
        let floor = file.floorFarAhead(of: now)
        if let floor, floor != reportedFloor {
            log?.note(
                subject: "replay",
                message:
                    "signatures made up to \(floor) are refused, which is \(floor - now) s ahead of "
                    + "the clock; if the clock was wrong before and is right now, "
                    + "`countersign replay confirm-clock` ends that"
            )
        }
        reportedFloor = floor
    }

    /// Applies what an administrator has confirmed since the last look.
    package func takeConfirmation(at now: Int64) throws(OperationalError) {
        let generation = deployment.generation.current
        guard generation != seenGeneration else { return }
        if let confirmation = try deployment.replayConfirmation() { try file.apply(confirmation, now: now) }
        seenGeneration = generation
    }

    /// The longest window of all policies and of refreshes.
    private static func window(_ keys: ReleaseKeyDirectory) -> Int {
        max(keys.longestWindow, Int(RefreshRequest.window))
    }
}
