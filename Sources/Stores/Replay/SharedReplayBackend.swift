import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// How one kind of server keeps the entries of a shared guard. ``BackedReplayGuard`` has what they share.
protocol SharedReplayBackend: AnyObject, Sendable {
    associatedtype Client: ReplayLoopClient
    /// What a look reaches, and finds there.
    associatedtype Server
    typealias Look = ReplayLook<Server>

    static var kind: SharedReplayKind { get }
    /// Milliseconds between two looks: at least, at most, and at most after a failure.
    static var pauses: (least: Int, most: Int, retry: Int) { get }

    var settings: SharedReplaySettings { get }
    var record: ReplayEpochRecord { get }

    // MARK: For requests; thread-safe

    func client(
        on loop: EventLoop, grants: ReplayGrants<Client.Grant>, suspect: @escaping @Sendable () -> Void
    ) -> Client
    /// Why the server has no room for the entry, and whether the next look can make some; nil if it has.
    func obstacle(
        to entry: ReplayEntry, now: Int64, under grant: Client.Grant
    ) -> (reason: String, canEnd: Bool)?
    func insertion(of entry: ReplayEntry, now: Int64, under grant: Client.Grant) -> Client.Insertion

    // MARK: For the guard's own loop

    /// `isSuspected` if entries may be lost since the last look.
    func look(on loop: EventLoop, isSuspected: Bool) async throws(OperationalError) -> Look
    /// Called after a failure, and at the end.
    func disconnect()
    /// Why entries of the epoch may be lost; nil if they are not. `known` is the last epoch of this node.
    func loss(
        of epoch: ReplayEpoch, in look: Look, known: ReplayEpoch?
    ) async throws(OperationalError) -> ReplayLoss?
    /// Throws if the record must not be changed now.
    func prepareChange(beginsEpoch: Bool, in look: Look) async throws(OperationalError)
    /// Marks the server's data with an epoch that has just begun.
    func mark(_ epoch: ReplayEpoch, in look: Look) async throws(OperationalError)
    /// The same epoch for wider needs.
    func widened(_ epoch: ReplayEpoch, to need: ReplayRetention, now: Int64) -> ReplayEpoch
    func grant(for epoch: ReplayEpoch, in look: Look) async throws(OperationalError) -> Client.Grant
    /// Called once the grant is published.
    func finish(_ grant: Client.Grant, for clients: [Client], in look: Look) throws(OperationalError)
    /// Whether the last grant holds until its lease ends in spite of the failure of a look.
    func holdsGrant(after error: OperationalError) -> Bool
    /// The error for an epoch that keeps changing.
    func failure(_ text: String) -> OperationalError
}

extension SharedReplayBackend {
    func disconnect() {}
    func finish(_ grant: Client.Grant, for clients: [Client], in look: Look) {}
}

/// What the server and the store had at one moment.
struct ReplayLook<Server> {
    let server: Server
    /// The server's name for the log.
    let title: String
    let identity: ReplayDataSet
    /// The server's random identifier, or the one that it gets if an epoch begins on it. Nil for a guard in
    /// the store, which is the same for all nodes.
    var serverID: String?
    var evicted: Int64 = 0
    /// The deployment's epoch; nil if another guard has been used since.
    let epoch: ReplayEpoch?
    /// Before the store was read: seconds of the monotonic clock.
    let began: Int64
}

struct ReplayLoss {
    let reason: String
    /// When it happened, if not just now.
    var time: Int64?
    /// Whether the server lacks the epoch's marks, which another node may be about to write.
    var isOfMarks = false
}
