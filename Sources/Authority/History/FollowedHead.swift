import CountersignGate
import CountersignMemory
import CountersignWire
import Glibc

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
        /// Whether this node must report ``kept`` to the other nodes.
        var isToBeReported = false
        /// Ends with ``fault``.
        var lease: NodeLease?
        /// What another node has reported, if that alone keeps this one from using the store.
        var refusal: OperationalError?
    }

    private let rows: RowAuthenticator
    private let accepted: AcceptedCopy
    private let state: Locked<State>
    /// Used by one thread at a time; a write takes microseconds.
    private let file: Locked<HeadFile>
    private let changes: StoreChangeFile
    private let clock: any TimeSource
    /// Names the data folder to other nodes.
    private let reporter: String
    private let isReporter: Bool

    /// With ``AcceptedCopy/any``, no store is refused, and none is followed.
    init(
        in folder: DataFolder, under rows: RowAuthenticator, accepting accepted: AcceptedCopy = .latest,
        clock: any TimeSource = SystemTime()
    ) throws(OperationalError) {
        (self.rows, self.clock) = (rows, clock)
        (self.accepted, isReporter) = (accepted == .any ? .any : .latest, accepted == .latestOfAllNodes)
        reporter = "\(FollowedHead.machine):\(folder.path)"
        changes = StoreChangeFile(in: folder)
        var file = try HeadFile(folder.followedHead)
        state = Locked(State(kept: file.newest(under: rows)))
        self.file = Locked(file)
    }

    private static var machine: String {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The head that another data folder keeps.
    package static func kept(
        in folder: DataFolder, under rows: RowAuthenticator
    ) throws(OperationalError) -> StoreHead? {
        var file = try HeadFile(folder.followedHead)
        return file.newest(under: rows)
    }

    package var kept: StoreHead? { state.with { $0.kept } }

    /// The same, with what other processes on the folder have followed meanwhile.
    private func latest() -> StoreHead? {
        let there = file.with { $0.newest(under: rows) }
        return state.with { state in
            if let there, state.kept?.advance(to: there) == nil { state.kept = there }
            return state.kept
        }
    }

    /// Throws if the store was found to be behind.
    package func requireUsable() throws(OperationalError) {
        if let fault = state.with({ $0.fault }) { throw fault }
    }

    /// Whether the store must not be used, perhaps until a report is rejected.
    package var isBehind: Bool { state.with { $0.fault != nil || $0.refusal != nil } }

    /// Ends `lease` as soon as the store is found to be behind: what is in memory is refused, too.
    package func ends(_ lease: NodeLease) {
        let fault = state.with { state in
            state.lease = lease
            return state.fault
        }
        if let fault { lease.end(for: fault) }
    }

    /// Throws if the store is behind the head that was kept before it is read, or if another node has
    /// reported that it is; otherwise follows it. What this process commits meanwhile is later than what
    /// is read. `place` is the store's name; `read` is given the number of the audit record that is
    /// compared.
    package func require(
        of place: String, reading read: (_ record: Int64) throws(OperationalError) -> StoreState
    ) throws(OperationalError) {
        try requireUsable()
        guard accepted == .latest else { return }
        let kept = latest()
        let found = try read(kept?.audit.number ?? 0)
        // Without a summary that opens, nothing is known; the check of all rows reports that.
        guard let seen = head(of: found) else { return }
        let restoration = rows.restoration(of: found)
        state.with { $0.restoration = restoration }
        guard let reason = difference(of: found, seen, from: kept, after: restoration) else {
            let refused = report(in: found, against: seen, after: restoration).map {
                refusal(of: place, by: $0)
            }
            state.with { $0.refusal = refused }
            if let refused { throw refused }
            return follow(seen)
        }
        throw refusal(of: place, reason: reason)
    }

    /// Throws if the store is behind, for a transaction that has read `summary` and keeps all others from
    /// writing: no other one has been followed meanwhile. `transactions` are those before it.
    package func require(
        _ summary: RowSummary, transactions: Int64, of place: String
    ) throws(OperationalError) {
        guard accepted == .latest, let kept = latest() else { return }
        let seen = StoreHead(of: summary, transactions: transactions)
        guard let reason = missing(in: seen, from: kept) else { return }
        throw refusal(of: place, reason: reason)
    }

    private func refusal(of place: String, reason: String) -> OperationalError {
        let fault = OperationalError(
            .failed,
            message: "\(place): \(reason). Sessions that had ended would live again. Put the right store in "
                + "place, or run `countersign restore --in-place` (docs/operate/postgresql-backup.md)")
        let lease = state.with { state in
            state.fault = fault
            return state.lease
        }
        lease?.end(for: fault)
        return fault
    }

    /// What another node has reported of this store, unless it was restored since.
    private func report(
        in found: StoreState, against seen: StoreHead, after restoration: AcceptedRestoration?
    ) -> HeadReport? {
        guard let report = found.reported.flatMap({ rows.openReport($0) }),
            report.head.restored >= seen.restored || restoration?.lacks(report.head) == true
        else { return nil }
        return report
    }

    private func refusal(of place: String, by report: HeadReport) -> OperationalError {
        OperationalError(
            .failed,
            message: "\(place): \(FollowedHead.earlier): another node, with the data folder "
                + "\(report.reporter), has followed a later one. If that folder belongs to a copy of this "
                + "deployment, such as a test system, run `countersign nodes reject-report`. Otherwise put "
                + "the right store in place, or run `countersign restore --in-place` "
                + "(docs/operate/postgresql-backup.md)")
    }

    /// Whether a store has all that was followed; false if nothing was.
    func isContained(in found: StoreState) -> Bool {
        guard let kept, let seen = head(of: found) else { return false }
        let restoration = rows.restoration(of: found)
        guard seen.missing(comparedWith: kept) == 0, restoration?.lacks(kept) != true else { return false }
        return kept.restored != seen.restored || kept.audit.number == 0
            || kept.audit.tag == AuditChain.firstTag || found.asked == kept.audit
    }

    /// The report that keeps nodes from using the store, and what ends that: a restoration without any
    /// consequence, so that heads of before do not count. Throws if there is no report, or if this data
    /// folder cannot show that the store has all changes.
    func rejection(
        of found: StoreState, at time: Int64, keyedRequestsFrom start: Int64
    ) throws(OperationalError) -> (report: HeadReport, restoration: AcceptedRestoration) {
        let restoration = rows.restoration(of: found)
        guard let seen = head(of: found),
            let report = self.report(in: found, against: seen, after: restoration)
        else { throw OperationalError(.failed, message: "no node has reported a later store") }
        guard restoration?.lacks(report.head) != true else {
            throw OperationalError(
                .failed,
                message: "\(report.reporter) has followed changes that `restore --in-place --lost` has not "
                    + "ended again; expected `countersign restore --in-place`")
        }
        guard isContained(in: found) else {
            throw OperationalError(
                .failed,
                message: "this data folder does not show that the store has all changes: it has followed no "
                    + "store, or one with other changes; expected the data folder of a node that has served")
        }
        var accepted = AcceptedRestoration(at: time, keyedRequestsFrom: start)
        if let repeated = restoration?.repeated {
            accepted.repeated = repeated
            accepted.repeated?.keyedRequestsFrom = start
        }
        return (report, accepted)
    }

    private func difference(
        of found: StoreState, _ seen: StoreHead, from kept: StoreHead?,
        after restoration: AcceptedRestoration?
    ) -> String? {
        guard let kept else { return nil }
        if restoration?.lacks(kept) == true {
            state.with { $0.isToBeReported = true }
            return "\(FollowedHead.earlier): `restore --in-place --lost` has not ended again all that this "
                + "data folder, or the replay guard, has followed"
        }
        return missing(in: seen, from: kept) ?? otherHistory(of: found, seen, than: kept)
    }

    private static let earlier = "it was put back to an earlier copy"

    private func missing(in seen: StoreHead, from kept: StoreHead) -> String? {
        let earlier = FollowedHead.earlier
        let missing = seen.missing(comparedWith: kept)
        guard missing > 0 else { return nil }
        state.with { $0.isToBeReported = true }
        if missing == .max {
            return "\(earlier): it is from before the last `countersign restore --in-place`"
        }
        return "\(earlier): it lacks at least \(missing) changes that this data folder has followed"
    }

    /// A tag stands for its record and all before it. A record with another tag, or none, is a difference,
    /// also if it is not authentic: otherwise an alteration of it would hide another history.
    private func otherHistory(of found: StoreState, _ seen: StoreHead, than kept: StoreHead) -> String? {
        guard kept.restored == seen.restored, kept.audit.number > 0, kept.audit.tag != AuditChain.firstTag,
            found.asked != kept.audit
        else { return nil }
        state.with { $0.isToBeReported = true }
        return
            "\(FollowedHead.earlier), and changed since: record \(kept.audit.number) of its audit log is not "
            + "the one that this data folder has followed"
    }

    private func head(of found: StoreState) -> StoreHead? {
        guard let summary = found.summary.flatMap({ rows.openSummary($0) }) else { return nil }
        return StoreHead(of: summary, transactions: found.transactions)
    }

    /// Notes what a transaction of this process has committed; `summary` is nil if it has not changed it.
    package func follow(transactions: Int64, summary: RowSummary?) {
        guard accepted == .latest, let kept else { return }
        var seen = summary.map { StoreHead(of: $0, transactions: transactions) } ?? kept
        seen.transactions = transactions
        follow(seen)
    }

    /// Notes the state of a store whose audit log an operator has accepted as it is.
    func accept(_ found: StoreState) {
        if let seen = head(of: found) { follow(seen) }
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
        guard isReporter, let kept = state.with({ $0.isToBeReported ? $0.kept : nil }) else { return }
        let sealed = rows.seal(HeadReport(head: kept, reporter: reporter))
        guard (try? report(sealed)) != nil else { return }
        state.with { $0.isToBeReported = false }
    }
}
