import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignSQL
import CountersignWire

/// The replay guard of a server: the file, or one that several nodes share.
///
/// The file is open in both cases, because its lock shows that a server runs on the data folder and is handed
/// over with the sockets. With a shared guard it has no entries.
struct ReplayBackend: Sendable {
    let file: ReplayFile
    let shared: (any SharedReplayGuard)?

    var current: any ReplayGuard { shared ?? file }

    /// Signatures made up to this time (Unix seconds) are refused; 0 for no bound.
    var currentFloor: Int64 { shared?.usage.floor ?? file.currentFloor }
}

/// The replay guard as a server or an administrative command opens it, and the server's periodic maintenance
/// of it.
package final class ReplayService {
    let backend: ReplayBackend
    private var file: ReplayFile { backend.file }
    private let deployment: Deployment
    private let keys: ReleaseKeyDirectory
    private let log: EventLog?
    /// The deployment's generation at the last look at the store.
    private var seenGeneration: UInt64?
    private var reportedFloor: Int64?

    /// For a command. Fails where another process has the file open. `window` are seconds ahead of the clock
    /// for which signatures may have been admitted, if those are more than the policies have.
    package convenience init(
        _ deployment: Deployment, keys: ReleaseKeyDirectory, atLeast window: Int = 0
    ) throws(OperationalError) {
        try self.init(deployment, keys: keys, location: .file, database: nil, log: nil, atLeast: window) {
            () throws(OperationalError) in deployment.store
        }
    }

    /// For a server. Fails if another process has the file open and does not share it, and if a shared guard
    /// cannot be used. `openStore` opens a connection for its epochs alone. `own` are the ids of this node
    /// and of the one that it replaces.
    init(
        _ deployment: Deployment, keys: ReleaseKeyDirectory, location: ReplayLocation,
        database: PostgreSQLAddress?, log: EventLog?,
        sharing: ReplayFileHandover? = nil, besides own: Set<String> = [], atLeast window: Int = 0,
        openStore: () throws(OperationalError) -> any Store
    ) throws(OperationalError) {
        (self.deployment, self.keys, self.log) = (deployment, keys, log)
        if sharing != nil, try SharedReplayKind.inUse(in: deployment.store) != location.shared {
            throw OperationalError(
                .failed,
                message:
                    "--replay: the running server has another replay guard than `\(location.text)`, and two "
                    + "guards would each admit a request once; stop it before this one is started")
        }
        var settings = ReplayFile.Settings()
        settings.window = max(ReplayService.window(keys), window)
        settings.lifetime = keys.longestLifetime
        let remembered =
            try location.isFile
            ? deployment.store.value(of: .replayFile).flatMap {
                ReplayFileID(String(decoding: $0, as: UTF8.self))
            } : nil
        let file = try ReplayFile(
            path: deployment.folder.replay, expecting: remembered, settings: settings,
            refused: deployment.replayConfirmation()?.refused ?? TimeIntervals(), handover: sharing,
            now: SystemTime().now)
        if location.shared != nil {
            let store = try openStore()
            let settings = SharedReplaySettings(
                secret: deployment.replaySecret, retention: ReplayService.retention(keys),
                refused: try deployment.replayConfirmation()?.refused ?? TimeIntervals(),
                formerFloor: { file.floorForSuccessor(now: SystemTime().now) },
                rival: { (guarding, isStarting) throws(OperationalError) in
                    try store.rival(of: guarding, besides: own, isStarting: isStarting)
                },
                exchangeHead: { [head = deployment.head] in head.exchange($0) },
                note: { log?.note(subject: "replay", message: $0) })
            let shared: any SharedReplayGuard
            if let address = location.redis {
                shared = try settings.redisGuard(at: address, store: store)
            } else if let database {
                shared = try settings.postgreSQLGuard(at: database, store: store)
            } else {
                throw OperationalError(.usage, message: "--replay postgres: expected --store postgres://…")
            }
            try shared.start()
            backend = ReplayBackend(file: file, shared: shared)
            return
        }
        backend = ReplayBackend(file: file, shared: nil)
        if remembered != file.report.id {
            try deployment.store.set(.replayFile, to: Array(file.report.id.description.utf8))
        }
        if let floor = file.report.floor, file.report.condition != .intact {
            log?.note(
                subject: "replay",
                message: "\(file.report.condition.rawValue); signatures made up to \(floor) are refused")
        }
    }

    /// The warning that requests are refused until the floor has passed; nil if the floor refuses no request
    /// that is signed now.
    package static func warning(ofFloor floor: Int64, at now: Int64) -> String? {
        guard floor >= now else { return nil }
        return "signatures made up to \(CivilTime.rfc3339Text(floor)) are refused, for \(floor - now + 1) s "
            + "more: the replay guard may have lost or missed requests of that time"
    }

    /// The floor of the deployment's shared guard; nil if it has another guard, or none yet.
    package static func sharedFloor(of deployment: Deployment) throws(OperationalError) -> Int64? {
        guard let kind = try sharedGuard(of: deployment) else { return nil }
        return try ReplayEpochRecord(deployment.store, of: kind, secret: deployment.replaySecret).current()?
            .floor
    }

    /// The deployment's shared guard; then the replay file and its commands do not apply. Nil for the file.
    package static func sharedGuard(of deployment: Deployment) throws(OperationalError) -> SharedReplayKind? {
        try SharedReplayKind.inUse(in: deployment.store)
    }

    /// Signatures made at or before this time (Unix seconds) are refused; nil for no bound.
    package var floor: Int64? { file.report.floor }

    func stop() { backend.shared?.stop() }

    /// Makes this guard the deployment's again, if another one was used while this node was cut off.
    func reclaim(at now: Int64) throws(OperationalError) {
        if let shared = backend.shared { return shared.confirmAgain() }
        let id = Array(file.report.id.description.utf8)
        guard try deployment.store.value(of: .replayFile) != id else { return }
        try file.raiseFloor(at: now)
        try deployment.store.set(.replayFile, to: id)
        log?.note(
            subject: "replay",
            message: "another replay guard was in use; signatures made up to a window from now are refused")
    }

    /// Adapts the guard to the policies and the clock. Call from a timer.
    func runMaintenance(at now: Int64) throws(OperationalError) {
        try file.setWindow(ReplayService.window(keys), lifetime: keys.longestLifetime, now: now)
        if let shared = backend.shared {
            shared.setRetention(ReplayService.retention(keys))
            return
        }
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

    private static func retention(_ keys: ReleaseKeyDirectory) -> ReplayRetention {
        ReplayRetention(window: window(keys), lifetime: keys.longestLifetime)
    }

    /// The longest window of all policies and of refreshes.
    private static func window(_ keys: ReleaseKeyDirectory) -> Int {
        max(keys.longestWindow, Int(RefreshRequest.window))
    }
}
