import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// A replay guard that several nodes share: it is on a server beside them, and each loop has a connection of
/// its own to it.
package protocol SharedReplayGuard: ReplayGuard {
    var kind: SharedReplayKind { get }
    var usage: SharedReplayUsage { get }
    /// The guard's name for other nodes.
    var name: NodeReplayGuard { get }

    /// Begins to watch the server; returns once it can be used, and throws the reason if it cannot.
    func start() throws(OperationalError)
    /// Gives a loop a connection of its own. Call before the loop starts.
    func attach(to loop: EventLoop)
    /// Adapts what entries are kept for to the policies.
    func setRetention(_ need: ReplayRetention)
    /// Inserts nothing until the epoch is read again, because another guard may have admitted requests in the
    /// meantime.
    func confirmAgain()
    func stop()
}

/// The kinds of shared guards. The names are those of `--replay`, of metrics and of the node's row.
package enum SharedReplayKind: String, Sendable, CaseIterable {
    case redis
    case postgreSQL = "postgres"

    /// Milliseconds within which a server must have answered an insertion, so that a request is refused
    /// within 100 ms where it does not.
    package static let patience = 70

    package var title: String { self == .redis ? "Redis" : "PostgreSQL" }

    /// Stands in the place of a replay file's id while this is the deployment's guard. A replay file that is
    /// used later is then another one than the store expects, so that its floor rises.
    var mark: [UInt8] { Array((String(repeating: "0", count: 31) + (self == .redis ? "0" : "1")).utf8) }

    /// Throws if the server's clock differs from this machine's: a floor covers what nodes may have admitted
    /// only as far as their clocks agree.
    func check(clock time: Int64, now: Int64) throws(OperationalError) {
        let difference = time - now
        guard abs(difference) <= ReplayEpoch.clockTolerance else {
            throw OperationalError(
                .failed,
                message: "the clock of \(title) differs from this machine's by \(difference) s; expected "
                    + "\(ReplayEpoch.clockTolerance) s at most")
        }
    }

    /// The shared guard of the deployment with that store; nil for a replay file.
    package static func inUse(in store: any MetaStore) throws(OperationalError) -> SharedReplayKind? {
        let mark = try store.value(of: .replayFile)
        return allCases.first { $0.mark == mark }
    }
}

package struct SharedReplayUsage: Sendable, Equatable {
    /// The current epoch's number; 0 before the first epoch.
    package var epoch: Int64
    /// Signatures made at or before this time are refused; 0 for no bound.
    package var floor: Int64
    package var refusals: UInt64
    /// Why not every loop inserts now; nil if each does.
    package var failure: String?
}
