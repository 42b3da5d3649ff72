import CountersignAuthority
import CountersignSeal
import CountersignServer
import CountersignTrust
import CountersignWire

extension Command {
    static let webhookAdd = Command(
        words: ["webhook", "add"], summary: "have an HTTPS endpoint be told of events",
        positionals: [Positional(name: "URL")],
        options: [
            .value("app", placeholder: "APP", meaning: "events of this app alone"),
            Option(
                name: "events", kind: .list("TYPE"),
                meaning: "these types alone, or several joined by commas (default: all)",
                form: .text(WebhookEventType.allCases.map(\.rawValue))),
            .flag("allow-private", meaning: "its name may lead to a private or a loopback address"),
            .value(
                "ca", placeholder: "F",
                meaning:
                    "verify its certificate by the authorities in this PEM file, in place of the system's"),
            .data, .json,
        ],
        notes: """
            The running server begins at once. It signs each delivery (RFC 9421) by the key that
            `countersign webhook key` prints. An event is delivered at least once, in no certain order; a
            failed delivery is tried again for some two and a half days. Types:

            """
                + WebhookEventType.allCases.map { "  \($0.rawValue)\n      \($0.meaning)" }
                .joined(separator: "\n")
    ) { (run) throws(OperationalError) in
        let url = try run.required("URL")
        _ = try WebhookURL(url)
        let endpoint = WebhookEndpoint(
            id: "w_" + Hex.encode(SystemRandom().bytes(4).span), url: url,
            app: try run.arguments.value("app").map { (text) throws(OperationalError) in
                guard let app = AppName(text) else {
                    throw OperationalError(.usage, message: "--app `\(text)`: no such app")
                }
                return app
            },
            types: try run.webhookTypes(),
            reach: run.arguments.has("allow-private") ? .anyAddress : .publicAddresses,
            authorities: try run.webhookAuthorities(), created: run.now)
        try run.deployment().add(endpoint)
        try run.print(.object(endpoint.members)) { "\(endpoint.id) is told of events at \(url)" }
        run.console.note(
            "note: `countersign webhook test \(endpoint.id)` sends it one; `webhook key` prints the key")
        return .success
    }

    static let webhookList = Command(
        words: ["webhook", "list"], summary: "list the endpoints that are told of events",
        options: [.data, .json]
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let endpoints = try deployment.webhookSettings().endpoints
        let counts = try deployment.store.deliveryCounts()
        let lost = try deployment.store.droppedDeliveries()
        func dropped(_ endpoint: WebhookEndpoint) -> Int64 {
            lost.first { $0.endpoint == endpoint.id }?.count ?? 0
        }
        try run.print([
            "webhooks": .array(
                endpoints.map { .object($0.members + [("dropped", .integer(dropped($0)))]) }),
            "waiting": .integer(counts.waiting),
            "dead": .integer(counts.dead), "oldest": counts.oldest.map { .integer($0) } ?? .null,
        ]) {
            if endpoints.isEmpty { return "no webhooks; `countersign webhook add URL` adds one" }
            return Table.text(
                head: ["ID", "URL", "APP", "EVENTS", "ADDRESSES", "SINCE", "DROPPED"],
                rows: endpoints.map { endpoint in
                    [
                        endpoint.id, endpoint.url, endpoint.app?.description ?? "all",
                        endpoint.types.isEmpty
                            ? "all" : endpoint.types.map(\.rawValue).sorted().joined(separator: ","),
                        endpoint.reach.rawValue, TimeText.text(endpoint.created), "\(dropped(endpoint))",
                    ]
                }) + "\n\(counts.waiting) deliveries wait, \(counts.dead) were given up"
        }
        return .success
    }

    static let webhookRemove = Command(
        words: ["webhook", "remove"], summary: "tell an endpoint of no more events",
        positionals: [Positional(name: "ID")], options: [.data, .json],
        notes: "What waits for it is not delivered."
    ) { (run) throws(OperationalError) in
        let endpoint = try run.deployment().removeWebhook(run.required("ID"))
        try run.print(["id": .string(endpoint.id), "removed": true]) { "removed \(endpoint.id)" }
        return .success
    }

    static let webhookTest = Command(
        words: ["webhook", "test"], summary: "send an endpoint an event of the type webhook.test",
        positionals: [Positional(name: "ID")], options: [.data, .json],
        notes: "A running server delivers it. `countersign webhook list` and the log say what came of it."
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let endpoint = try deployment.webhook(run.required("ID"))
        let event = try deployment.testWebhook(endpoint)
        try run.print(["id": .string(endpoint.id), "event": .string(event)]) {
            "\(event) waits for \(endpoint.id)"
        }
        return .success
    }

    static let webhookDead = Command(
        words: ["webhook", "dead"], summary: "list the deliveries that were given up",
        positionals: [Positional(name: "ID", presence: .optional)], options: [.data, .json],
        notes: """
            The latest 200, of one endpoint or of all. They are kept for 30 days. `countersign webhook retry`
            has them be tried again.
            """
    ) { (run) throws(OperationalError) in
        let deliveries = try run.deployment().store.deadDeliveries(
            of: run.arguments.positional("ID"), limit: 200)
        try run.print(["deliveries": .array(deliveries.map { .object($0.members) })]) {
            if deliveries.isEmpty { return "no delivery was given up" }
            return Table.text(
                head: ["EVENT", "WEBHOOK", "HAPPENED", "GIVEN UP", "WHY"],
                rows: deliveries.map { delivery in
                    [
                        delivery.event, delivery.endpoint, TimeText.text(delivery.created),
                        delivery.givenUp.map { TimeText.text($0) } ?? "-", delivery.failure ?? "-",
                    ]
                })
        }
        return .success
    }

    static let webhookRetry = Command(
        words: ["webhook", "retry"], summary: "try deliveries again that were given up",
        positionals: [Positional(name: "EVENT", presence: .optional)],
        options: [.flag("all", meaning: "all of them"), .data, .json]
    ) { (run) throws(OperationalError) in
        let event = run.arguments.positional("EVENT")
        guard (event == nil) == run.arguments.has("all") else {
            throw OperationalError(.usage, message: "webhook retry: expected EVENT or --all")
        }
        let count = try run.deployment().store.reviveDeliveries(of: event, at: run.now)
        if let event, count == 0 {
            throw OperationalError(.missing, message: "event \(event): no delivery of it was given up")
        }
        try run.print(["retried": .integer(Int64(count))]) { "\(count) deliveries wait again" }
        return .success
    }

    static let webhookKey = Command(
        words: ["webhook", "key"], summary: "show the key that signs deliveries, and the next one",
        options: [.flag("rotate", meaning: "let the next key sign from now on"), .data, .json],
        notes: """
            Ed25519 public keys, in base64url, with their ids (RFC 7638). Give receivers both: a rotation then
            needs no change there.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let seeds =
            run.arguments.has("rotate")
            ? try deployment.rotateWebhookKey() : try deployment.webhookSeeds()
        let keys = try WebhookKeys(seeds)
        try run.print(keys.json) { "current: \(keys.current.text)\nnext:    \(keys.next.text)" }
        return .success
    }
}

extension Invocation {
    fileprivate func webhookTypes() throws(OperationalError) -> Set<WebhookEventType> {
        var types: Set<WebhookEventType> = []
        for text in arguments.values("events").flatMap({ $0.split(separator: ",").map(String.init) }) {
            guard let type = WebhookEventType(rawValue: text) else {
                let known = WebhookEventType.allCases.map(\.rawValue).joined(separator: ", ")
                throw OperationalError(.usage, message: "--events `\(text)`: expected one of \(known)")
            }
            types.insert(type)
        }
        return types
    }

    fileprivate func webhookAuthorities() throws(OperationalError) -> String? {
        guard let path = arguments.value("ca") else { return nil }
        let bytes = try Console.readFile(path, limit: 16 << 10)
        let certificates: [Trust.Certificate]
        do throws(TrustError) {
            certificates = try Trust.Certificate.all(inPEM: bytes)
        } catch {
            throw OperationalError(.usage, message: "--ca \(path): \(error)")
        }
        guard !certificates.isEmpty else {
            throw OperationalError(.usage, message: "--ca \(path): no certificate in it")
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension WebhookDelivery {
    fileprivate var members: [(name: String, value: JSONValue)] {
        [
            ("event", .string(event)), ("webhook", .string(endpoint)), ("created", .integer(created)),
            ("attempts", .integer(attempts)), ("failure", .optional(failure)),
            ("given_up", givenUp.map { .integer($0) } ?? .null),
            ("body", .string(String(decoding: body, as: UTF8.self))),
        ]
    }
}
