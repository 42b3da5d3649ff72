import CountersignWire

/// Endpoints that are told of events, and what could not be delivered.
enum WebhookPages {
    static func list(_ visit: ConsoleVisit) throws(APIProblem) -> ConsolePage {
        let answer = try visit.run("listWebhooks")
        let rows: [[HTML]] = answer.records("webhooks").map { endpoint in
            let id = endpoint.text("id")
            let types = endpoint.texts("events").joined(separator: ", ")
            return [
                ConsoleMarkup.code(id), "\(endpoint.text("url"))",
                "\(endpoint.has("app") ? endpoint.text("app") : "all")", "\(types.isEmpty ? "all" : types)",
                endpoint.text("addresses") == "any"
                    ? ConsoleMarkup.badge("private addresses, too", tone: .warning) : "public",
                "\(endpoint.text("dropped"))",
                visit.actions([
                    ("testWebhook", [("webhook", id)]), ("removeWebhook", [("webhook", id)]),
                ]),
            ]
        }
        let keys: [HTML] = try visit.run("getWebhookKey").records("keys").map {
            "<li>\(ConsoleMarkup.code($0.text("kid")))</li>"
        }
        return ConsolePage(
            "Webhooks",
            body: """
                \(visit.actions([("addWebhook", []), ("rotateWebhookKey", [])]))
                \(ConsoleMarkup.facts([
                    ("Deliveries that wait", "\(answer.text("waiting"))"),
                    ("Given up", "\(answer.text("dead"))"),
                    ("The oldest that waits", ConsoleMarkup.time(answer.number("oldest"), empty: "none")),
                    ("Ids of the key and of the next one", "<ol>\(keys)</ol>"),
                ]))
                \(ConsoleMarkup.table(
                    "Endpoints", head: ["Id", "URL", "App", "Events", "Addresses", "Dropped", ""],
                    rows: rows,
                    empty: "No endpoint is told of events."))
                \(try dead(visit))
                """)
    }

    private static func dead(_ visit: ConsoleVisit) throws(APIProblem) -> HTML {
        let deliveries = try visit.run("listDeadDeliveries").records("deliveries")
        guard !deliveries.isEmpty else { return .none }
        let rows: [[HTML]] = deliveries.map { delivery in
            [
                ConsoleMarkup.code(delivery.text("event")), ConsoleMarkup.code(delivery.text("webhook")),
                ConsoleMarkup.time(delivery.number("created")),
                ConsoleMarkup.time(delivery.number("given_up")),
                "\(delivery.text("failure"))",
            ]
        }
        return ConsoleMarkup.section(
            "Given up", id: "given-up",
            body: visit.actions([("retryDeliveries", [])])
                + ConsoleMarkup.table(
                    "Deliveries that were given up",
                    head: ["Event", "Endpoint", "Happened", "Given up", "Why"],
                    rows: rows, empty: ""))
    }
}
