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
        /// From when keyed requests are accepted. Whole Unix seconds.
        package let keyedRequestsFrom: Int64
    }

    private let deployment: Deployment
    private let store: StoreLocation

    fileprivate init(_ deployment: Deployment, in store: StoreLocation) {
        (self.deployment, self.store) = (deployment, store)
    }

    fileprivate func run(
        after former: FormerDeployment?, at now: Int64
    ) throws(OperationalError) -> Outcome {
        try deployment.store.requireNoLiveNodes()
        let head = try deployment.verify(copy: deployment.store, called: store.text)
        let restored = try deployment.nextRestoration(at: now)
        let restoration = StoreRestoration(at: store.place, authenticatingBy: deployment.rows)
        let ended = try restoration.run(at: now, inPlace: restored) { ended in
            deployment.auditDraft(
                for: .backupRestore, on: .deployment,
                details: [("head", .string(head.text))] + ended.details)
        }
        let repeated = try former.map { (former) throws(OperationalError) in
            try former.repeatEndings(in: deployment, storedAt: store.place, following: head, at: now)
        }
        return Outcome(
            ended: ended, repeated: repeated, head: head,
            keyedRequestsFrom: restored + IdempotencyCoordinator.keptSeconds)
    }
}

extension Configuration {
    /// Makes the store, which was put back to an earlier copy, the deployment's store again. No server
    /// may use it. What `former` has ended since is ended again. `now` is in whole Unix seconds.
    package func restoreInPlace(
        after former: FormerDeployment?, environment: [String: String], now: Int64
    ) throws(OperationalError) -> InPlaceRestoration.Outcome {
        let folder = try DataFolder(data, absence: .fail)
        return try folder.withoutServer(
            refusal: "\(data): a server runs on this data folder; stop all gateways first"
        ) { () throws(OperationalError) in
            let deployment = try openDeployment(
                absence: .fail, environment: environment, acknowledging: .durable, accepting: .any)
            defer { deployment.store.close() }
            return try InPlaceRestoration(deployment, in: store).run(after: former, at: now)
        }
    }
}
