import CountersignWire

/// The texts of refusals of an app, by language.
enum RefusalTextPage {
    static func page(of app: String, visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
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
}
