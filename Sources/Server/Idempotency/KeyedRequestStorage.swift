import CountersignAuthority
import CountersignGate
import CountersignWire

/// Where a server keeps keyed requests: over an SQLite file in the log of its data folder, and over a
/// database as rows, which all nodes see.
struct KeyedRequestStorage {
    /// The name under which a log is offered to a successor. One that does not know it must not take over,
    /// because it would look for keyed requests in the store.
    static let logOffer = "request-log"

    let store: any IdempotencyStore
    /// Nil over a database.
    private let log: LoggedRequests?

    /// Call ``requireNoLog(in:over:)`` before the deployment is opened.
    init(
        of deployment: Deployment, over location: StoreLocation, writer: any StoreWriter,
        readiness: Readiness, note: @escaping @Sendable (String) -> Void
    ) throws(OperationalError) {
        let start = try deployment.keyedRequestsStart(keptFor: IdempotencyCoordinator.keptSeconds)
        if start > SystemTime().now {
            note(
                "the deployment was restored from a backup: keyed requests are refused until "
                    + CivilTime.rfc3339Text(start))
        }
        guard !location.isShared else {
            (store, log) = (StoredRequests(writer), nil)
            return
        }
        let opened = try LoggedRequests(
            RequestLog(in: deployment.folder, keys: deployment.requestKeys), note: note,
            didFail: { readiness.set(.requestLog, detail: $0.message) })
        (store, log) = (opened, opened)
    }

    /// Throws if the folder of a server over a database has a log with records: copies of its requests would
    /// reach the backend again. It takes no key, so it runs before the database is opened or written.
    static func requireNoLog(in folder: DataFolder, over location: StoreLocation) throws(OperationalError) {
        guard location.isShared else { return }
        let files = try RequestLog.filesWithRecords(in: folder)
        guard !files.isEmpty else { return }
        throw OperationalError(
            .failed,
            message:
                "\(files.joined(separator: ", ")): keyed requests that the database may not have. Run "
                + "`countersign migrate FROM \(location.text)`, which moves them with the store FROM, or "
                + "finishes an interrupted move. If there is nothing to move, delete the files: a client "
                + "that repeats one of these requests then has it executed a second time")
    }

    /// What a successor is told. `lockFile` is any descriptor: what is handed over has one.
    func offers(describedBy lockFile: FileDescriptor) -> [(name: String, descriptor: FileDescriptor)] {
        log == nil ? [] : [(KeyedRequestStorage.logOffer, lockFile)]
    }

    /// Writes what waits. Call once nothing more is begun.
    func stop() { log?.stop() }
}
