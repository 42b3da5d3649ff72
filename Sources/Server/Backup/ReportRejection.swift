import CountersignAuthority
import CountersignSQL
import CountersignWire

extension Configuration {
    /// Rejects what a node has reported of the store: the data folder that has followed a later one belongs
    /// to a copy of this deployment. Gateways that refuse because of the report serve again, and nothing
    /// ends. Throws unless this data folder has followed the store, and the store has all that it followed.
    /// `now` is in whole Unix seconds.
    package func rejectReport(
        environment: [String: String], at now: Int64
    ) throws(OperationalError) -> HeadReport {
        guard case .postgreSQL = store.place else {
            throw OperationalError(
                .usage, message: "nodes reject-report: nodes report nothing of a store that is a file")
        }
        let deployment = try openDeployment(
            absence: .fail, environment: environment, acknowledging: .durable, accepting: .any)
        defer { deployment.store.close() }
        let clock = RestorationClock(now: now, confirmation: .none)
        let time = try deployment.store.clock().map { (database) throws(OperationalError) in
            try clock.time(beside: database)
        }
        let (report, restoration) = try deployment.rejection(
            at: time ?? now,
            keyedRequestsFrom: deployment.keyedRequestsStart(keptFor: IdempotencyCoordinator.keptSeconds))
        try StoreRestoration(at: store.place, authenticatingBy: deployment.rows).accept(
            restoration,
            recording: deployment.auditDraft(
                for: .nodesRejectReport, on: .deployment,
                details: [("reporter", .string(report.reporter))]))
        deployment.generation.advance()
        return report
    }
}
