import CountersignAuthority
import CountersignGate
import CountersignServer
import CountersignWire

/// Apps: their releases, their routes and their policies.
enum AppPages {
    private static let trail = [(title: "Apps", path: ConsolePath.path("apps"))]

    static func list(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let rows: [[HTML]] = try visit.perform(AppOperations.list).apps.map { app in
            let name = app.app.name.description
            let accounts: HTML =
                visit.may("listAccounts")
                ? ConsoleMarkup.link("Accounts", to: ConsolePath.path("apps", name, "accounts")) : .none
            return [
                ConsoleMarkup.link(name, to: ConsolePath.path("apps", name)), "\(app.releases)",
                "\(app.schemes.joined(separator: ", "))", ConsoleMarkup.time(app.app.created),
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
        let apps = try visit.perform(AppOperations.list).apps
        guard let app = apps.first(where: { $0.app.name.description == name }) else {
            throw APIProblem(404, code: "not-found", detail: "app \(name): there is none")
        }
        let away = ConsoleMarkup.notice(
            "This app is in maintenance: all its requests get 503.", tone: .warning)
        let isAway = app.condition.isInMaintenance
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
        let routes = try visit.perform(RouteOperations.list, visit.app(app))
        let rows: [[HTML]] = routes.rules.map { rule in
            let methods = rule.methodTexts.joined(separator: ",")
            let limits = rule.limits.texts
            let subject = [(name: "app", value: app), (name: "prefix", value: rule.prefixText)]
            // A rule is replaced as a whole: the form begins with all that it has.
            var whole =
                subject + [(name: "methods", value: methods), (name: "require", value: rule.level.rawValue)]
            if let word = rule.enforcement?.word { whole.append(("enforcement", word)) }
            for limit in limits { whole.append((limit.name.replacing("-", with: "_"), limit.value)) }
            return [
                ConsoleMarkup.code(rule.prefixText), "\(methods.isEmpty ? "all" : methods)",
                "\(meaning(of: rule.level))",
                rule.enforcement?.word == "observe"
                    ? ConsoleMarkup.badge("observes only", tone: .warning) : "enforced",
                "\(limits.map { "\($0.name) \($0.value)" }.joined(separator: ", "))",
                visit.actions([
                    ("setRoute", whole),
                    ("removeRoute", subject + [("methods", methods)]),
                ]),
            ]
        }
        let observing = ConsoleMarkup.notice("The app only observes: nothing is refused.", tone: .warning)
        return ConsoleMarkup.section(
            "Routes", id: "routes",
            body: """
                \(routes.isObserving ? observing : .none)
                \(ConsoleMarkup.table(
                    "What requests have to prove, by path",
                    head: ["Path", "Methods", "Requires", "Enforcement", "Limits", ""], rows: rows,
                    empty: "No rule: every request needs a session."))
                """)
    }

    /// What a level of a route means to its callers.
    private static func meaning(of level: RouteRule.Level) -> String {
        switch level {
        case .open: "open: nothing, anyone passes"
        case .signed: "signed: a live release signs, no one need be signed in"
        case .session: "session: a signed-in account"
        case .device: "device: a signed-in account, and the device's own key signs"
        }
    }

    static func policy(_ name: String, of visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let policy = try visit.perform(AppOperations.policy, visit.app(name))
        let rows: [[HTML]] = policy.entries.map { entry in
            let (key, value, isSet) = (entry.key.name, entry.value, entry.isSet)
            return [
                ConsoleMarkup.code(key), "\(value.isEmpty ? "–" : value)",
                isSet ? ConsoleMarkup.badge("set", tone: .quiet) : "default", "\(entry.key.meaning)",
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
