import CountersignGate
import CountersignWire

/// What time does to sessions: those that nobody renews end, and those that ended are forgotten. A little at a time, so that no
/// request waits behind it for long.
extension SessionLife {
    /// Seconds for which an ended session's key is kept, so that its holder is told why. Source: docs/protocol.md,
    /// "Sessions".
    package static let remembrance: Int64 = 30 * 86_400
    /// The same while there are more of them than ``mostEnded``.
    private static let shortRemembrance: Int64 = 86_400
    private static let mostEnded = 1_000_000
    private static let bite = 200

    /// For a timer, every few seconds. `now` is in whole Unix seconds.
    package func upkeep(at now: Int64) throws(Fault) {
        for app in live.keys.apps {
            guard let policy = try live.keys.policy(of: app) else { continue }
            let (before, overflow) = now.subtractingReportingOverflow(policy.sessionIdle)
            if !overflow { expire(app, usedBefore: before, at: now) }
        }
        let patience =
            live.counts.ended > SessionLife.mostEnded ? SessionLife.shortRemembrance : SessionLife.remembrance
        forget(endedBefore: now - patience)
    }

    private func expire(_ app: AppName, usedBefore time: Int64, at now: Int64) {
        writer.writeLater { [live] (store) throws(Fault) in
            let ids = try store.expireSessions(of: app, usedBefore: time, limit: SessionLife.bite, at: now)
            live.take(try SessionLife.rows(of: ids, in: store))
        }
    }

    private func forget(endedBefore time: Int64) {
        writer.writeLater { [live] (store) throws(Fault) in
            live.forget(try store.forgetSessions(endedBefore: time, limit: SessionLife.bite))
        }
    }
}
