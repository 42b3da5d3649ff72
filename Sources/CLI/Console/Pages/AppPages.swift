import CountersignAuthority
import CountersignServer
import CountersignWire

/// Apps: their releases, their routes and their policies.
enum AppPages {
    private static let trail = [(title: "Apps", path: ConsolePath.path("apps"))]

    static func list(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let apps = try visit.run("listApps").records("apps")
        let rows: [[HTML]] = apps.map { app in
            let name = app.text("app")
            let accounts: HTML =
                visit.may("listAccounts")
                ? ConsoleMarkup.link("Accounts", to: ConsolePath.path("apps", name, "accounts")) : .none
            return [
                ConsoleMarkup.link(name, to: ConsolePath.path("apps", name)), "\(app.text("releases"))",
                "\(app.texts("schemes").joined(separator: ", "))", ConsoleMarkup.time(app.number("created")),
                accounts,
            ]
        }
        return ConsolePage(
            "Apps",
            body: """
                \(visit.actions([("addApp", [])]))
                \(ConsoleMarkup.table(
                    "Apps", head: ["App", "Releases", "Schemes", "Added", ""], rows: rows,
                    empty: "There is no app yet."))
                """)
    }

    static func app(_ name: String, of visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let apps = try visit.run("listApps").records("apps")
        guard apps.contains(where: { $0.text("app") == name }) else {
            throw APIProblem(404, code: "not-found", detail: "app \(name): there is none")
        }
        let maintenance = try visit.run("listMaintenance").records("apps").first { $0.text("app") == name }
        let away = ConsoleMarkup.notice(
            "This app is in maintenance: all its requests get 503.", tone: .warning)
        let isAway = maintenance?.isTrue("maintenance") ?? false
        let subject = [(name: "app", value: name)]
        let accounts: HTML =
            visit.may("listAccounts")
            ? "<a class=\"button\" href=\"\(ConsolePath.path("apps", name, "accounts"))\">Accounts</a>"
            : .none
        return ConsolePage(
            name, trail: trail,
            body: """
                \(isAway ? away : .none)
                <p class="actions">\(accounts)
                <a class="button" href="\(ConsolePath.path("apps", name, "policy"))">Policy</a>
                <a class="button" href="\(ConsolePath.path("apps", name, "messages"))">Texts</a></p>
                \(visit.actions([
                    ("addRelease", subject), ("setRoute", subject),
                    (isAway ? "endMaintenance" : "beginMaintenance", subject),
                ]))
                \(try releases(of: name, visit: visit))
                \(try routes(of: name, visit: visit))
                """)
    }

    private static func releases(of app: String, visit: ConsoleVisit) throws(APIProblem) -> HTML {
        guard visit.may("listReleases") else { return .none }
        let use = visit.may(.serverRead) ? try ReleaseUse.today(visit) : [:]
        let rows = try visit.run("listReleases", values: ["app": app]).records("releases").map {
            ReleasePages.cells(of: $0, use: use[$0.text("key_id")], visit: visit)
        }
        return ConsoleMarkup.section(
            "Releases", id: "releases",
            body: ConsoleMarkup.table(
                "Releases; shares and refusals are of yesterday and today", head: ReleasePages.head,
                rows: rows,
                empty: "No release: no caller is let through."))
    }

    private static func routes(of app: String, visit: ConsoleVisit) throws(APIProblem) -> HTML {
        let answer = try visit.run("listRoutes", values: ["app": app])
        let rows: [[HTML]] = answer.records("routes").map { rule in
            let methods = rule.texts("methods").joined(separator: ",")
            let limits = rule.record("limits")?.members.map { "\($0.name) \($0.text)" } ?? []
            let subject = [(name: "app", value: app), (name: "prefix", value: rule.text("prefix"))]
            // A rule is replaced as a whole: the form begins with all that it has.
            var whole =
                subject + [(name: "methods", value: methods), (name: "require", value: rule.text("require"))]
            if rule.has("enforcement") { whole.append(("enforcement", rule.text("enforcement"))) }
            for limit in rule.record("limits")?.members ?? [] {
                whole.append((limit.name.replacing("-", with: "_"), limit.text))
            }
            return [
                ConsoleMarkup.code(rule.text("prefix")), "\(methods.isEmpty ? "all" : methods)",
                "\(meaning(ofLevel: rule.text("require")))",
                rule.text("enforcement") == "observe"
                    ? ConsoleMarkup.badge("observes only", tone: .warning) : "enforced",
                "\(limits.joined(separator: ", "))",
                visit.actions([
                    ("setRoute", whole),
                    ("removeRoute", subject + [("methods", methods)]),
                ]),
            ]
        }
        let observing = ConsoleMarkup.notice("The app only observes: nothing is refused.", tone: .warning)
        let observes = answer.text("enforcement") == "observe"
        return ConsoleMarkup.section(
            "Routes", id: "routes",
            body: """
                \(observes ? observing : .none)
                \(ConsoleMarkup.table(
                    "What requests have to prove, by path",
                    head: ["Path", "Methods", "Requires", "Enforcement", "Limits", ""], rows: rows,
                    empty: "No rule: every request needs a session."))
                """)
    }

    /// What a level of a route means to its callers.
    private static func meaning(ofLevel level: String) -> String {
        switch level {
        case "open": "open: nothing, anyone passes"
        case "signed": "signed: a live release signs, no one need be signed in"
        case "session": "session: a signed-in account"
        case "device": "device: a signed-in account, and the device's own key signs"
        default: level
        }
    }

    static func policy(_ name: String, of visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let policy = try visit.run("getPolicy", values: ["app": name]).records("policy")
        let rows: [[HTML]] = policy.map { entry in
            let (key, value) = (entry.text("key"), entry.text("value"))
            let isSet = entry.isTrue("is_set")
            return [
                ConsoleMarkup.code(key), "\(value.isEmpty ? "–" : value)",
                isSet ? ConsoleMarkup.badge("set", tone: .quiet) : "default", "\(entry.text("meaning"))",
                visit.actions([
                    ("changePolicy", [("app", name), ("name", key), ("value", isSet ? value : "")])
                ]),
            ]
        }
        return ConsolePage(
            "Policy of \(name)", trail: trail + [(title: name, path: ConsolePath.path("apps", name))],
            body: ConsoleMarkup.table(
                "What callers are judged by", head: ["Key", "Value", "", "Meaning", ""], rows: rows,
                empty: "No key."))
    }
}
