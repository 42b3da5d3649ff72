import CountersignGate
import CountersignMemory
import CountersignWire

/// The highest head of the store that this data folder's processes have followed. It is kept in the
/// folder, so that a database that was put back to an earlier copy is not taken for the one that was
/// followed.
///
/// Safe to share. Once a store was found to be behind, this process does not use it any more: what it has in
/// memory may be later than the store.
package final class FollowedHead: Sendable {
    private struct State {
        var kept: StoreHead?
        var fault: OperationalError?
        /// Of the store that was followed last.
        var restoration: AcceptedRestoration?
        /// Whether the other nodes are to be told of ``kept``.
        var isToBeReported = false
    }

    private let rows: RowAuthenticator
    private let chain: AuditChain
    private let accepted: AcceptedCopy
    private let state: Locked<State>
    /// Used by one thread at a time; a write takes microseconds.
    private let file: Locked<HeadFile>
    private let changes: StoreChangeFile
    private let clock: any TimeSource

    /// With ``AcceptedCopy/any``, no store is refused, and none is followed.
    init(
        in folder: DataFolder, under rows: RowAuthenticator, chain: AuditChain,
        accepting accepted: AcceptedCopy = .latest, clock: any TimeSource = SystemTime()
    ) throws(OperationalError) {
        (self.rows, self.chain, self.accepted, self.clock) = (rows, chain, accepted, clock)
        changes = StoreChangeFile(in: folder)
        let file = try HeadFile(folder.followedHead)
        state = Locked(State(kept: file.newest(under: rows)))
        self.file = Locked(file)
    }

    /// The head that another data folder keeps.
    package static func kept(
        in folder: DataFolder, under rows: RowAuthenticator
    ) throws(OperationalError) -> StoreHead? {
        try HeadFile(folder.followedHead).newest(under: rows)
    }

    package var kept: StoreHead? { state.with { $0.kept } }

    /// Throws if the store was found to be behind.
    package func requireUsable() throws(OperationalError) {
        if let fault = state.with({ $0.fault }) { throw fault }
    }

    package var isBehind: Bool { state.with { $0.fault != nil } }

    /// Throws if the store is behind the head that was kept before it is read, or if another node has
    /// reported that it is; otherwise follows it. What this process commits meanwhile is later than what
    /// is read. `place` is the store's name; `read` is given the number of the audit record that is
    /// compared.
    package func require(
        of place: String, reading read: (_ record: Int64) throws(OperationalError) -> StoreState
    ) throws(OperationalError) {
        try requireUsable()
        guard accepted == .latest else { return }
        let kept = kept
        let found = try read(kept?.audit.number ?? 0)
        // Without a summary that opens, nothing is known; the check of all rows reports that.
        guard let seen = head(of: found) else { return }
        let restoration = found.restored.flatMap { rows.openRestoration($0) }
        state.with { $0.restoration = restoration }
        guard let reason = difference(of: found, seen, from: kept, after: restoration) else {
            return follow(seen)
        }
        let fault = OperationalError(
            .failed,
            message: "\(place): \(reason). Sessions that had ended would live again. Put the right store in "
                + "place, or run `countersign restore --in-place` (docs/operate/postgresql-backup.md)")
        state.with { $0.fault = fault }
        throw fault
    }

    private func difference(
        of found: StoreState, _ seen: StoreHead, from kept: StoreHead?,
        after restoration: AcceptedRestoration?
    ) -> String? {
        if let reported = found.reported.flatMap({ rows.openHead($0) }),
            reported.restored >= seen.restored || restoration?.lacks(reported) == true
        {
            return "\(FollowedHead.earlier): another node has followed a later one"
        }
        if let kept, restoration?.lacks(kept) == true {
            state.with { $0.isToBeReported = true }
            return "\(FollowedHead.earlier): `restore --in-place --lost` has not ended again all that this "
                + "data folder, or the replay guard, has followed"
        }
        guard let kept, let reason = missing(in: found, seen, from: kept) else { return nil }
        state.with { $0.isToBeReported = true }
        return reason
    }

    private static let earlier = "it was put back to an earlier copy"

    private func missing(in found: StoreState, _ seen: StoreHead, from kept: StoreHead) -> String? {
        let earlier = FollowedHead.earlier
        let missing = seen.missing(comparedWith: kept)
        if missing == .max {
            return "\(earlier): it is from before the last `countersign restore --in-place`"
        }
        guard missing == 0 else {
            return "\(earlier): it lacks at least \(missing) changes that this data folder has followed"
        }
        guard kept.restored == seen.restored, let asked = found.asked, asked.number == kept.audit.number,
            asked.tag != kept.audit.tag, isAuthentic(asked, behind: found.tagBeforeAsked)
        else { return nil }
        return
            "\(earlier), and changed since: record \(asked.number) of its audit log is not the one that this "
            + "data folder has followed"
    }

    /// A record that was altered is found by the verification of the log.
    private func isAuthentic(_ row: AuditRow, behind tag: [UInt8]?) -> Bool {
        chain.isEqual(chain.tag(of: row.record, behind: tag ?? AuditChain.firstTag), to: row.tag)
    }

    private func head(of found: StoreState) -> StoreHead? {
        guard let summary = found.summary.flatMap({ rows.openSummary($0) }) else { return nil }
        var head = StoreHead()
        head.restored = found.restored.flatMap { rows.openRestoration($0)?.time } ?? 0
        (head.transactions, head.changes) = (found.transactions, summary.changes)
        head.audit = AuditHead(
            number: summary.audit,
            tag: found.last.flatMap { $0.number == summary.audit ? $0.tag : nil } ?? AuditChain.firstTag)
        return head
    }

    /// Notes what a transaction of this process has committed.
    package func follow(transactions: Int64, summary: RowSummary?, audit: AuditHead?) {
        guard accepted == .latest, var seen = kept else { return }
        seen.transactions = transactions
        if let summary { seen.changes = summary.changes }
        if let audit { seen.audit = audit }
        follow(seen)
    }

    /// Keeps what a transaction of this process has changed, which may have been committed. What is lost with
    /// a database can then be ended again.
    package func keep(_ change: StoreChange) {
        guard accepted == .latest else { return }
        var change = change
        change.time = clock.estimate
        changes.append(change, under: rows)
    }

    private func follow(_ seen: StoreHead) {
        let isNews = state.with { state in
            guard state.fault == nil else { return false }
            let before = state.kept
            if state.kept?.advance(to: seen) == nil { state.kept = seen }
            return state.kept != before
        }
        // A head that cannot be written now is written with the next change.
        if isNews { file.with { $0.keep(seen, under: rows) } }
    }

    /// Takes the sealed head that is kept in another place, and returns what is to be kept there instead; nil
    /// if nothing is. The next look compares the store with what was found there.
    package func exchange(_ sealed: [UInt8]?) -> [UInt8]? {
        let there = sealed.flatMap { rows.openHead($0) }
        if let there { follow(there) }
        if let there, state.with({ $0.restoration?.lacks(there) }) == true {
            // The next look finds it in ``kept``, and tells the other nodes.
            state.with { $0.kept = there }
            return nil
        }
        guard let kept, there?.missing(comparedWith: kept) != 0 else { return nil }
        return rows.seal(kept)
    }

    /// Hands `report` the sealed head that the store is behind, until that has succeeded once.
    func report(by report: ([UInt8]) throws(OperationalError) -> Void) {
        guard let kept = state.with({ $0.isToBeReported ? $0.kept : nil }) else { return }
        guard (try? report(rows.seal(kept))) != nil else { return }
        state.with { $0.isToBeReported = false }
    }
}
