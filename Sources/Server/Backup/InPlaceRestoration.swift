import CountersignAuthority
import CountersignSQL
import CountersignWire

/// A store that was put back to an earlier copy, by PostgreSQL's tools or as a file, becomes the
/// deployment's store again: what may have ended since the copy was made ends now. Nodes that have
/// followed the later store accept it afterwards.
package struct InPlaceRestoration {
    package struct Outcome: Sendable {
        package let ended: StoreRestoration.Ended
        /// What the former store had ended; nil if none was named.
        package let repeated: FormerDeployment.Repeated?
        /// The head of the audit log as the copy had it.
        package let head: AuditHead
        /// The lost changes that were found; nil if all that may have ended was ended.
        package let lost: LostChanges?
        /// From when keyed requests are accepted. Whole Unix seconds.
        package let keyedRequestsFrom: Int64
    }

    /// What is known of a loss of the last seconds.
    package struct Loss: Sendable {
        /// No earlier changes are lost.
        package var seconds: Int64
        /// The data folders of the other nodes, or copies of them.
        package var folders: [String]

        package init(seconds: Int64, folders: [String]) { (self.seconds, self.folders) = (seconds, folders) }
    }

    private let deployment: Deployment
    private let store: StoreLocation
    private let clock: RestorationClock

    fileprivate init(_ deployment: Deployment, in store: StoreLocation, at clock: RestorationClock) {
        (self.deployment, self.store, self.clock) = (deployment, store, clock)
    }

    fileprivate func run(
        after former: FormerDeployment?, losing loss: Loss?, keepingKeysFor kept: Int
    ) throws(OperationalError) -> Outcome {
        try deployment.store.requireNoLiveNodes()
        let lost = try loss.map { (loss) throws(OperationalError) in try find(loss) }
        let head = try deployment.verify(copy: deployment.store, called: store.text)
        let findings = try former.map { (former) throws(OperationalError) in
            try former.findings(for: deployment, following: originalHeads(head))
        }
        let now = try time(after: former, findings)
        var restoration = AcceptedRestoration(
            at: try deployment.nextRestoration(at: now),
            keyedRequestsFrom: now + IdempotencyCoordinator.keptSeconds)
        if let lost, let loss {
            restoration.repeated = AcceptedRestoration.Repeated(
                former: deployment.head.kept?.restored ?? 0, position: lost.position,
                keyedRequestsFrom: now + max(Int64(kept), loss.seconds))
        }
        let rows = StoreRestoration(at: store.place, authenticatingBy: deployment.rows)
        let endings = [lost.map { RepeatedEndings($0) }, findings?.endings].compactMap(\.self)
        var repeated = FormerDeployment.Repeated()
        var erased: [AccountName] = []
        let ended = try rows.run(
            at: now, inPlace: restoration, ending: lost,
            repeating: { (transaction) throws(OperationalError) in
                for each in endings {
                    erased += try each.end(
                        in: deployment, within: transaction, at: now, counting: &repeated)
                }
            }
        ) { ended in
            deployment.auditDraft(
                for: .backupRestore, on: .deployment,
                details: [("head", .string(head.text))]
                    + (lost.map { [("lost", .integer(Int64($0.count)))] } ?? []) + ended.details)
        }
        deployment.generation.advance()
        try deployment.scrub(erased: erased)
        return Outcome(
            ended: ended, repeated: endings.isEmpty ? nil : repeated, head: head, lost: lost,
            keyedRequestsFrom: restoration.repeated?.keyedRequestsFrom ?? 0)
    }

    /// The heads of which the former store has one: the copy's, or that of the copy which an earlier run has
    /// accepted. An earlier run counts only if this data folder knows that the store is not behind: a copy
    /// can have the record of a run before it, too.
    private func originalHeads(_ head: AuditHead) throws(OperationalError) -> [AuditHead] {
        guard try deployment.hasAllThatWasFollowed(), let original = try deployment.headOfLastRestoration()
        else { return [head] }
        return [head, original]
    }

    private func time(
        after former: FormerDeployment?, _ findings: FormerDeployment.Findings?
    ) throws(OperationalError) -> Int64 {
        if let database = try deployment.store.clock() { return try clock.time(beside: database) }
        return try clock.time(
            beside: [try deployment.newestAuditTime(), findings?.newestRecord ?? 0],
            in: [deployment.folder, former?.clockFolder])
    }

    private func find(_ loss: Loss) throws(OperationalError) -> LostChanges {
        guard case .postgreSQL = store.place else {
            throw OperationalError(
                .usage, message: "--lost: a standby that was promoted is a PostgreSQL database")
        }
        guard let own = deployment.head.kept else {
            throw OperationalError(
                .failed, message: "\(deployment.folder.path): this data folder has followed no store")
        }
        var (heads, changes) = ([own], StoreChangeFile(in: deployment.folder).changes(under: deployment.rows))
        for path in loss.folders {
            let folder = try DataFolder(path, absence: .fail)
            guard let head = try FollowedHead.kept(in: folder, under: deployment.rows) else {
                throw OperationalError(
                    .failed, message: "\(path): no node of this deployment has used this data folder")
            }
            heads.append(head)
            changes += StoreChangeFile(in: folder).changes(under: deployment.rows)
        }
        let state = try deployment.store.state(askingForAuditRecord: 0)
        let restored = deployment.rows.restoration(of: state)?.time ?? 0
        guard restored == own.restored, heads.allSatisfy({ $0.restored <= restored }) else {
            throw OperationalError(
                .failed,
                message: "\(store.text): it is from before the last `countersign restore --in-place`, or a "
                    + "data folder has followed nothing since; expected that command without --lost")
        }
        return try LostChanges(
            from: state, called: store.text, to: heads.filter { $0.restored == restored }, in: changes,
            within: loss.seconds)
    }
}

extension Deployment {
    /// The head of the copy that the last restoration has accepted; nil if there was none.
    fileprivate func headOfLastRestoration() throws(OperationalError) -> AuditHead? {
        var found: AuditHead?
        var after: Int64 = 0
        while true {
            let rows = try store.auditRows(after: after, limit: 1_000)
            for row in rows {
                guard let root = row.document?.root,
                    root["action"]?.string == AuditAction.backupRestore.rawValue,
                    let text = root["details"]?["head"]?.string
                else { continue }
                found = AuditHead(text)
            }
            guard let last = rows.last, rows.count == 1_000 else { return found }
            after = last.number
        }
    }
}

extension Configuration {
    /// Makes the store, which was put back to an earlier copy, the deployment's store again. No server
    /// may use it. What `former` has ended since is ended again. With `loss`, only what the lost changes
    /// concern is ended.
    package func restoreInPlace(
        after former: FormerDeployment?, losing loss: InPlaceRestoration.Loss?,
        environment: [String: String], at clock: RestorationClock
    ) throws(OperationalError) -> InPlaceRestoration.Outcome {
        let folder = try DataFolder(data, absence: .fail)
        return try folder.withoutServer(
            refusal: "\(data): a server runs on this data folder; stop all gateways first"
        ) { () throws(OperationalError) in
            let deployment = try openDeployment(
                absence: .fail, environment: environment, acknowledging: .durable, accepting: .any)
            defer { deployment.store.close() }
            return try InPlaceRestoration(deployment, in: store, at: clock).run(
                after: former, losing: loss, keepingKeysFor: idempotency.bounds.floor)
        }
    }
}
