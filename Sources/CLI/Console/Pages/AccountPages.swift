import CountersignServer
import CountersignWire

/// The accounts of an app, and one person's.
enum AccountPages {
    private static let pageLength = 100

    private static func trail(of app: String) -> [(title: String, path: String)] {
        [(title: "Apps", path: ConsolePath.path("apps")), (title: app, path: ConsolePath.path("apps", app))]
    }

    static func list(
        _ app: String, request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsolePage {
        var values = ["app": app, "limit": "\(pageLength)"]
        if !request.value("after").isEmpty { values["after"] = request.value("after") }
        let answer = try visit.run("listAccounts", values: values)
        let rows: [[HTML]] = answer.records("accounts").map { account in
            let name = account.text("account")
            return [
                ConsoleMarkup.link(name, to: ConsolePath.path("apps", app, "accounts", name)),
                state(account.text("state")), "\(account.text("credential"))",
                "\(account.has("user_id") ? account.text("user_id") : "–")",
                ConsoleMarkup.time(account.number("created")),
            ]
        }
        let following = ConsolePath.path("apps", app, "accounts", query: [("after", answer.text("next"))])
        let next: HTML =
            answer.has("next")
            ? """
            <p><a rel="next" href="\(following)">\
            Next \(pageLength)</a></p>
            """ : .none
        return ConsolePage(
            "Accounts of \(app)", trail: trail(of: app),
            body: """
                \(visit.actions([("addAccount", [("app", app)])]))
                \(ConsoleMarkup.table(
                    "Accounts", head: ["Account", "State", "Credential", "User id", "Added"], rows: rows,
                    empty: "No account here."))
                \(next)
                """)
    }

    private static func state(_ state: String) -> HTML {
        ConsoleMarkup.badge(state, tone: state == "active" ? .good : state == "locked" ? .bad : .quiet)
    }

    static func account(
        _ name: String, app: String, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsolePage {
        let subject = [(name: "app", value: app), (name: "account", value: name)]
        let account = try visit.run("getAccount", values: ["app": app, "account": name])
        let isLocked = account.text("state") == "locked"
        let export: HTML =
            visit.may("exportAccount")
            ? """
            <p class="actions"><a class="button" download \
            href="\(ConsolePath.path("apps", app, "accounts", name, "export"))">Export
            everything as JSON</a></p>
            """ : .none
        let facts: [(name: String, value: HTML)] = [
            ("State", state(account.text("state"))), ("Credential", "\(account.text("credential"))"),
            ("Number", "\(account.text("number"))"),
            ("User id", "\(account.has("user_id") ? account.text("user_id") : "none")"),
            ("Added", ConsoleMarkup.time(account.number("created"))),
            ("Reset codes until", ConsoleMarkup.time(account.number("reset_until"), empty: "none")),
            ("Verified", ConsoleMarkup.time(account.number("verified"), empty: "no")),
            ("Codes", codes(account)),
            ("Upload tickets", "\(account.text("upload_tickets"))"),
            ("Pseudonym in the audit log", ConsoleMarkup.code(account.text("pseudonym"))),
        ]
        let operations =
            [
                isLocked ? "unlockAccount" : "lockAccount", "resetAccount",
                account.has("verified") ? "undoVerification" : "verifyAccount", "makeCode", "redeemCode",
                "setUserID",
            ] + (account.has("user_id") ? ["clearUserID"] : []) + ["removeAccount", "eraseAccount"]
        return ConsolePage(
            name,
            trail: trail(of: app) + [(title: "Accounts", path: ConsolePath.path("apps", app, "accounts"))],
            body: """
                \(visit.actions(operations.map { ($0, subject) }))\(export)
                \(ConsoleMarkup.facts(facts))
                \(try sessions(of: name, app: app, visit: visit))
                \(try devices(of: name, app: app, visit: visit))
                """)
    }

    private static func codes(_ account: ConsoleRecord) -> HTML {
        let codes: [HTML] = account.records("codes").map { code in
            let (purpose, tries) = (ConsoleMarkup.code(code.text("purpose")), code.text("tries_left"))
            return
                "<li>\(purpose) until \(ConsoleMarkup.time(code.number("until"))), tries left: \(tries)</li>"
        }
        return codes.isEmpty ? "none" : "<ul>\(codes)</ul>"
    }

    private static func sessions(
        of name: String, app: String, visit: ConsoleVisit
    ) throws(APIProblem) -> HTML {
        guard visit.may("listSessions") else { return .none }
        let sessions = try visit.run(
            "listSessions", values: ["app": app, "account": name, "ended": "true"]
        ).records("sessions")
        let rows: [[HTML]] = sessions.map { session in
            let id = session.text("session")
            guard !session.isTrue("altered") else {
                return [ConsoleMarkup.code(id), ConsoleMarkup.badge("altered in the database", tone: .bad)]
                    + [HTML](repeating: "–", count: 6)
            }
            let device = session.record("device")
            let state: HTML =
                session.has("ended")
                ? "\(session.text("ended")) at \(ConsoleMarkup.time(session.number("ended_at")))"
                : ConsoleMarkup.badge("live", tone: .good)
            return [
                ConsoleMarkup.code(id), "\(device?.text("name") ?? "")", "\(device?.text("class") ?? "")",
                "\(session.text("platform"))", "\(session.text("kind"))",
                ConsoleMarkup.time(session.number("used")),
                state,
                session.has("ended")
                    ? .none
                    : visit.actions([("revokeSession", [("app", app), ("account", name), ("session", id)])]),
            ]
        }
        return ConsoleMarkup.section(
            "Sessions", id: "sessions",
            body: ConsoleMarkup.table(
                "Sessions",
                head: ["Session", "Device", "Class", "Platform", "Kind", "Last used", "State", ""],
                rows: rows, empty: "No session."))
    }

    private static func devices(
        of name: String, app: String, visit: ConsoleVisit
    ) throws(APIProblem) -> HTML {
        let devices = try visit.run("listDevices", values: ["app": app, "account": name]).records("devices")
        let rows: [[HTML]] = devices.map { device in
            let id = device.text("device")
            return [
                ConsoleMarkup.code(String(id.prefix(16))),
                "\(device.has("name") ? device.text("name") : "–")",
                "\(device.has("class") ? device.text("class") : "–")",
                ConsoleMarkup.time(device.number("first_seen"), empty: "–"),
                ConsoleMarkup.time(device.number("last_seen"), empty: "–"),
                visit.actions([("forgetDevice", [("app", app), ("account", name), ("device", id)])]),
            ]
        }
        return ConsoleMarkup.section(
            "Devices", id: "devices",
            body: ConsoleMarkup.table(
                "Known devices", head: ["Device", "Name", "Class", "First seen", "Last seen", ""], rows: rows,
                empty: "No device is known."))
    }

    /// Everything that is held about the person, as a file.
    static func export(
        _ name: String, app: String, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsoleAnswer {
        let export = try visit.run("exportAccount", values: ["app": app, "account": name])
        return .download(name: "\(app)-account.json", body: export.bytes)
    }
}
