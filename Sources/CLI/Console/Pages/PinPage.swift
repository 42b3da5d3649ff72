import CountersignWire

/// The pin manifests that clients are handed.
enum PinPage {
    static func page(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let rows: [[HTML]] = try visit.run("listPins").records("manifests").map { manifest in
            let hasExpired = manifest.number("not_after").map { $0 <= visit.now } ?? false
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
                    + (hasExpired ? ConsoleMarkup.badge("expired", tone: .warning) : .none),
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
