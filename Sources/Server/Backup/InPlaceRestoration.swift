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

    fileprivate init(_ deployment: Deployment, in store: StoreLocation) {
        (self.deployment, self.store) = (deployment, store)
    }

    fileprivate func run(
        after former: FormerDeployment?, losing loss: Loss?, keepingKeysFor kept: Int, at now: Int64
    ) throws(OperationalError) -> Outcome {
        try deployment.store.requireNoLiveNodes()
        let lost = try loss.map { (loss) throws(OperationalError) in try find(loss) }
        let head = try deployment.verify(copy: deployment.store, called: store.text)
        var restoration = AcceptedRestoration(at: try deployment.nextRestoration(at: now))
        if let lost, let loss {
            restoration.repeated = AcceptedRestoration.Repeated(
                former: deployment.head.kept?.restored ?? 0, position: lost.position,
                keyedRequestsFrom: max(restoration.time, now) + max(Int64(kept), loss.seconds))
        }
        let rows = StoreRestoration(at: store.place, authenticatingBy: deployment.rows)
        let ended = try rows.run(at: now, inPlace: restoration, ending: lost) { ended in
            deployment.auditDraft(
                for: .backupRestore, on: .deployment,
                details: [("head", .string(head.text))]
                    + (lost.map { [("lost", .integer(Int64($0.count)))] } ?? []) + ended.details)
        }
        var repeated = try lost.map { (lost) throws(OperationalError) in
            try deployment.endAgain(lost, storedAt: store.place, at: now)
        }
        if let former {
            repeated = try former.repeatEndings(
                in: deployment, storedAt: store.place, following: head, at: now)
        }
        return Outcome(
            ended: ended, repeated: repeated, head: head, lost: lost,
            keyedRequestsFrom: restoration.repeated?.keyedRequestsFrom
                ?? restoration.time + IdempotencyCoordinator.keptSeconds)
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
    /// Erases, removes, locks and retires again what the lost changes had.
    fileprivate func endAgain(
        _ lost: LostChanges, storedAt place: StorePlace, at now: Int64
    ) throws(OperationalError) -> FormerDeployment.Repeated {
        var repeated = FormerDeployment.Repeated()
        var erased: [(name: AccountName, app: AppName)] = []
        for (number, state) in lost.accounts.sorted(by: { $0.key < $1.key }) {
            guard let account = try store.account(number), !account.isErased else { continue }
            if lost.erased.contains(number) {
                erased.append((account.name, account.app))
            } else if state == .removed, account.state != .removed {
                _ = try removeAccount(account.name, of: account.app, at: now)
                repeated.removed += 1
            } else if state == .locked, account.state == .active {
                _ = try lockAccount(account.name, of: account.app, at: now)
                repeated.locked += 1
            }
        }
        try eraseAccounts(erased, at: now)
        repeated.erased = Int64(erased.count)
        for (id, retirement) in lost.retirements {
            guard let release = try store.release(id), release.retirement != retirement else { continue }
            try retire(id, with: retirement)
            repeated.retired += 1
        }
        repeated.reservedNames = try StoreRestoration(at: place, authenticatingBy: rows)
            .add(erasedNames: lost.erasedNames)
        return repeated
    }
}

extension Configuration {
    /// Makes the store, which was put back to an earlier copy, the deployment's store again. No server
    /// may use it. What `former` has ended since is ended again. With `loss`, only what the lost changes
    /// concern is ended. `now` is in whole Unix seconds.
    package func restoreInPlace(
        after former: FormerDeployment?, losing loss: InPlaceRestoration.Loss?,
        environment: [String: String], now: Int64
    ) throws(OperationalError) -> InPlaceRestoration.Outcome {
        let folder = try DataFolder(data, absence: .fail)
        return try folder.withoutServer(
            refusal: "\(data): a server runs on this data folder; stop all gateways first"
        ) { () throws(OperationalError) in
            let deployment = try openDeployment(
                absence: .fail, environment: environment, acknowledging: .durable, accepting: .any)
            defer { deployment.store.close() }
            // Until when keyed requests are refused is stored as a time.
            try deployment.requireClock(for: "restore --in-place")
            return try InPlaceRestoration(deployment, in: store).run(
                after: former, losing: loss, keepingKeysFor: idempotency.bounds.floor, at: now)
        }
    }
}
