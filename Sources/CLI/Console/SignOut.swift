import CountersignAuthority
import CountersignServer
import CountersignWire

/// Ends the operator's own session.
enum SignOut {
    static func end(_ visit: ConsoleVisit) throws(APIProblem) {
        defer { visit.host.close() }
        do throws(OperationalError) {
            let deployment = try visit.host.open(environment: visit.environment.variables)
            try deployment.endConsoleSession(visit.session.id, at: visit.now)
        } catch {
            throw APIProblem(error)
        }
    }
}
