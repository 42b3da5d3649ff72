import CountersignWire

/// What clients are handed: the texts of refusals, and pin manifests.
enum HandedOutPages {
    static func messages(of app: String, visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let messages = try visit.run("listMessages", values: ["app": app]).records("messages")
        let rows: [[HTML]] = messages.map { entry in
            let (language, release) = (entry.text("language"), entry.text("release"))
            let texts: [HTML] = (entry.record("texts")?.members ?? []).map {
                "<li>\(ConsoleMarkup.code($0.name)) \($0.text)</li>"
            }
            return [
                ConsoleMarkup.code(language), entry.has("release") ? ConsoleMarkup.code(release) : "all",
                "<ul>\(texts)</ul>",
                visit.actions([
                    (
                        "removeMessages",
                        [("app", app), ("language", language)]
                            + (entry.has("release") ? [("release", release)] : [])
                    )
                ]),
            ]
        }
        return ConsolePage(
            "Texts of \(app)",
            trail: [
                (title: "Apps", path: ConsolePath.path("apps")),
                (title: app, path: ConsolePath.path("apps", app)),
            ],
            body: """
                \(visit.actions([("setMessages", [("app", app)])]))
                \(ConsoleMarkup.table(
                    "What refused callers are told in place of our own words",
                    head: ["Language", "Release", "Texts", ""], rows: rows,
                    empty: "No texts: callers are told our own words."))
                """)
    }

    static func pins(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let rows: [[HTML]] = try visit.run("listPins").records("manifests").map { manifest in
            let isOver = manifest.number("not_after").map { $0 <= visit.now } ?? false
            let hosts: [HTML] = manifest.records("hosts").map { host in
                let mode: HTML =
                    host.text("mode") == "enforce"
                    ? .none : ConsoleMarkup.badge("reports only", tone: .warning)
                return "<li>\(ConsoleMarkup.code(host.text("pattern"))) \(mode)</li>"
            }
            return [
                "\(manifest.text("app"))", "\(manifest.text("version"))",
                ConsoleMarkup.time(manifest.number("not_before")),
                ConsoleMarkup.time(manifest.number("not_after"))
                    + (isOver ? ConsoleMarkup.badge("over", tone: .warning) : .none),
                "<ul>\(hosts)</ul>",
            ]
        }
        return ConsolePage(
            "Pin manifests",
            body: """
                \(visit.actions([("publishPins", [])]))
                \(ConsoleMarkup.table(
                    "What clients are handed; the signatures are verified by the apps",
                    head: ["App", "Version", "From", "To", "Hosts"], rows: rows,
                    empty: "No manifest: apps go by the pins that they were built with."))
                """)
    }
}
