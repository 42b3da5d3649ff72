import CountersignAuthority
import CountersignSchemes
import CountersignServer
import CountersignWire

/// Finds an event, a release, a session or an account by what an operator has at hand.
enum SearchPage {
    private typealias Hit = (kind: String, name: String, path: String)

    static func answer(to text: String, of visit: ConsoleVisit) throws(APIProblem) -> ConsoleAnswer {
        let text = String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        var hits: [Hit] = []
        if visit.may(.serverRead), try has("getRefusal", values: ["event": text], visit: visit) {
            let event = text.lowercased()
            hits.append(("event", event, ConsolePath.path("events", event)))
        }
        if visit.may(.releasesRead), try has("getReleasePolicy", values: ["key": text], visit: visit) {
            hits.append(("release", text, ConsolePath.path("releases", text)))
        }
        if visit.may(.sessionsRead), visit.may(.accountsRead), let hit = try session(text, of: visit) {
            hits.append(hit)
        }
        if visit.may(.accountsRead) {
            for app in try visit.apps()
            where try has("getAccount", values: ["app": app, "account": text], visit: visit) {
                hits.append(("account", "\(text) of \(app)", ConsolePath.path("apps", app, "accounts", text)))
            }
        }
        if hits.count == 1 { return .redirect(hits[0].path) }
        let rows: [[HTML]] = hits.map { [ConsoleMarkup.link($0.name, to: $0.path), "\($0.kind)"] }
        return .page(
            ConsolePage(
                "Search",
                body: ConsoleMarkup.table(
                    "Found for “\(text)”", head: ["Name", "Kind"], rows: rows,
                    empty:
                        "Nothing has the name or id “\(text)”. The log may have an older event."
                )))
    }

    /// False where the operation finds nothing of that name, or the name cannot be one.
    private static func has(
        _ operation: String, values: [String: String], visit: ConsoleVisit
    ) throws(APIProblem) -> Bool {
        do throws(APIProblem) {
            try visit.run(operation, values: values)
            return true
        } catch {
            guard [400, 404].contains(error.status) else { throw error }
            return false
        }
    }

    private static func session(_ text: String, of visit: ConsoleVisit) throws(APIProblem) -> Hit? {
        guard let id = SessionID(text) else { return nil }
        do throws(OperationalError) {
            let deployment = try visit.host.open()
            guard let session = try deployment.store.session(id),
                let account = try deployment.store.account(session.account)
            else { return nil }
            let (app, name) = (account.app.description, account.name.description)
            return ("session", "\(text) of \(name)", ConsolePath.path("apps", app, "accounts", name))
        } catch {
            throw APIProblem(error)
        }
    }
}
