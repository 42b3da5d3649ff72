import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSQL
import CountersignSeal
import CountersignWire

/// What a shared guard needs besides its server.
package struct SharedReplaySettings: Sendable {
    let secret: Secret
    let retention: Locked<ReplayRetention>
    let refused: TimeIntervals
    let formerFloor: @Sendable () -> Int64
    let rival: Rival
    let exchangeHead: @Sendable ([UInt8]?) -> [UInt8]?
    let patience: Int
    let clock: any TimeSource
    let note: @Sendable (String) -> Void

    /// Finds a live node that uses another guard than the given one, which must then not take the deployment
    /// from it. At a start, a node counts only after it was seen alive.
    package typealias Rival =
        @Sendable (_ guarding: NodeReplayGuard, _ isStarting: Bool) throws(OperationalError) -> Node?

    /// `secret` is the deployment's own. `formerFloor` tells up to where a replay file may have admitted
    /// signatures, and `refused` which creation times an operator's confirmation of the clock refuses.
    /// `exchangeHead` takes the sealed head of the store that a server apart from the store keeps, and
    /// returns what it is to keep instead, if anything. `note` gets one line whenever the state changes.
    package init(
        secret: Secret, retention: ReplayRetention, refused: TimeIntervals = TimeIntervals(),
        formerFloor: @escaping @Sendable () -> Int64 = { 0 },
        rival: @escaping Rival = { (_, _) throws(OperationalError) in nil },
        exchangeHead: @escaping @Sendable ([UInt8]?) -> [UInt8]? = { _ in nil },
        patience: Int = SharedReplayKind.patience,
        clock: any TimeSource = SystemTime(), note: @escaping @Sendable (String) -> Void
    ) {
        (self.secret, self.retention, self.refused) = (secret, Locked(retention), refused)
        (self.formerFloor, self.rival, self.exchangeHead) = (formerFloor, rival, exchangeHead)
        (self.patience, self.clock, self.note) = (patience, clock, note)
    }

    /// Entries in Redis, and the epoch that tells of their loss in the durable store. `store` is a connection
    /// that no other part uses.
    package func redisGuard(
        at address: RedisAddress, store: any MetaStore
    ) throws(OperationalError) -> any SharedReplayGuard {
        try BackedReplayGuard(RedisReplayBackend(address, store: store, settings: self))
    }

    /// Durable rows in the PostgreSQL database that the nodes share. `store` is in the database at `address`,
    /// over a connection that no other part uses.
    package func postgreSQLGuard(
        at address: PostgreSQLAddress, store: any Store
    ) throws(OperationalError) -> any SharedReplayGuard {
        try BackedReplayGuard(PostgreSQLReplayBackend(address, store: store, settings: self))
    }
}
