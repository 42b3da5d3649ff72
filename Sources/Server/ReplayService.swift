import CountersignAuthority
import CountersignGate
import CountersignWire

/// The replay file as a server or an administrative command opens it, and what a server does for it from time to time.
package final class ReplayService {
    package let file: ReplayFile
    private let deployment: Deployment
    private let keys: LiveKeys
    private let log: EventLog?
    /// The deployment's generation as of the last look at the store.
    private var seenGeneration: UInt64?
    private var reportedFloor: Int64?

    /// For a command. Fails where another process has the file open.
    package convenience init(_ deployment: Deployment, keys: LiveKeys) throws(Fault) {
        try self.init(deployment, keys: keys, log: nil)
    }

    /// For a server. Fails where another process has the file open, unless that shares it.
    init(_ deployment: Deployment, keys: LiveKeys, log: EventLog?, sharing: ReplaySharing? = nil) throws(Fault) {
        (self.deployment, self.keys, self.log) = (deployment, keys, log)
        let remembered = try deployment.store.value(of: .replayFile).flatMap {
            FileID(String(decoding: $0, as: UTF8.self))
        }
        var settings = ReplayFile.Settings()
        settings.window = ReplayService.window(keys)
        settings.lifetime = keys.longestLifetime
        file = try ReplayFile(
            path: deployment.folder.replay, expecting: remembered, settings: settings,
            refused: deployment.replayConfirmation()?.refused ?? Intervals(), sharing: sharing, now: SystemTime().now)
        if remembered != file.report.id {
            try deployment.store.set(.replayFile, to: Array(file.report.id.description.utf8))
        }
        if let floor = file.report.floor, file.report.found != .intact {
            log?.note("replay", "\(file.report.found.rawValue); signatures made up to \(floor) are refused")
        }
    }

    /// Follows the policies and the clock. For a timer.
    func turn(at now: Int64) throws(Fault) {
        try file.setWindow(ReplayService.window(keys), lifetime: keys.longestLifetime, now: now)
        try takeConfirmation(at: now)
        let floor = file.floorFarAhead(of: now)
        if let floor, floor != reportedFloor {
            log?.note(
                "replay",
                "signatures made up to \(floor) are refused, which is \(floor - now) s ahead of the clock; "
                    + "if the clock was wrong before and is right now, `countersign replay confirm-clock` ends that")
        }
        reportedFloor = floor
    }

    /// Carries out what an administrator has confirmed since the last look.
    package func takeConfirmation(at now: Int64) throws(Fault) {
        let generation = deployment.generation.current
        guard generation != seenGeneration else { return }
        if let confirmation = try deployment.replayConfirmation() { try file.confirm(confirmation, now: now) }
        seenGeneration = generation
    }

    /// The longest of the policies' windows, and a refresh's own.
    private static func window(_ keys: LiveKeys) -> Int { max(keys.longestWindow, Int(RefreshRequest.window)) }
}
