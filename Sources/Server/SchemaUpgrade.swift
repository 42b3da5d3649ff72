import CountersignAuthority
import CountersignSQL
import CountersignWire

extension Configuration {
    /// What bringing the deployment's store to this build's level would do. Changes nothing. Throws if the
    /// store is of a later level that this build cannot use.
    package func schemaPlan(environment: [String: String]) throws(OperationalError) -> SchemaPlan {
        _ = try DataFolder(data, absence: .fail)
        let opened = store.open(acknowledging: .durable)
        defer { opened.close() }
        let plan = try opened.schemaPlan()
        if plan.level > plan.target {
            try openDeployment(absence: .fail, environment: environment).store.close()
        }
        return plan
    }

    /// Brings the deployment's store to this build's level, by contracting migrations, too. Throws if nodes
    /// are live that could not go on, or a server uses the file.
    package func upgradeSchema(environment: [String: String]) throws(OperationalError) -> SchemaOutcome {
        let folder = try DataFolder(data, absence: .fail)
        guard store.isFile else { return try upgraded(environment: environment) }
        return try folder.withoutServer(
            refusal: "migrate: a server runs on this data folder; stop it first"
        ) { () throws(OperationalError) in try upgraded(environment: environment) }
    }

    private func upgraded(environment: [String: String]) throws(OperationalError) -> SchemaOutcome {
        let deployment = try openDeployment(
            absence: .fail, environment: environment, acknowledging: .durable, consenting: .all)
        deployment.store.close()
        return deployment.migration
    }
}
