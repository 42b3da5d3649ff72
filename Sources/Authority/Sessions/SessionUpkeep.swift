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
    nonisolated(nonsending) package func upkeep(at now: Int64) async throws(Refusal) {
        for app in live.keys.apps { try await expire(app, at: now) }
        let patience =
            live.counts.ended > SessionLife.mostEnded ? SessionLife.shortRemembrance : SessionLife.remembrance
        let ended = try await writer.write { (store) throws(Fault) in
            try store.forgetSessions(endedBefore: now - patience, limit: SessionLife.bite)
        }
        live.forget(ended)
    }

    nonisolated(nonsending) private func expire(_ app: AppName, at now: Int64) async throws(Refusal) {
        let (before, overflow) = now.subtractingReportingOverflow(try policy(of: app).sessionIdle)
        guard !overflow else { return }
        let rows = try await writer.write { (store) throws(Fault) in
            let ids = try store.expireSessions(of: app, usedBefore: before, limit: SessionLife.bite, at: now)
            return try SessionLife.rows(of: ids, in: store)
        }
        live.take(rows)
    }
}
