import CountersignAuthority
import CountersignServer
import CountersignWire

extension APIOperation {
    static let webhooks: [APIOperation] = [
        APIOperation(
            "listWebhooks", method: .get, path: "/webhooks", scope: .webhooksRead, command: .webhookList,
            response: .object([
                APIMember("webhooks", schema: .list(listed)), APIMember("waiting", schema: .count),
                APIMember("dead", schema: .count), APIMember("oldest", schema: .nullable(.time)),
            ])),
        APIOperation(
            "addWebhook", method: .post, path: "/webhooks", scope: .webhooksWrite, command: .webhookAdd,
            inputs: [
                .required("url", as: .positional("URL"), meaning: "https://HOST[:PORT]/PATH"),
                .optional("app", as: .option("app"), meaning: "events of this app alone"),
                .optional(
                    "events", as: .joined("events"),
                    schema: .list(.choice(WebhookEventType.allCases.map(\.rawValue))),
                    meaning: "all types without it"),
            ], status: 201, response: endpoint),
        APIOperation(
            "removeWebhook", method: .delete, path: "/webhooks/{webhook}", scope: .webhooksWrite,
            command: .webhookRemove, inputs: [.webhook],
            response: .object([APIMember("id", schema: .text), APIMember("removed", schema: .boolean)])),
        APIOperation(
            "testWebhook", method: .post, path: "/webhooks/{webhook}/test", scope: .webhooksWrite,
            command: .webhookTest, inputs: [.webhook], status: 201,
            response: .object([APIMember("id", schema: .text), APIMember("event", schema: .text)])),
        APIOperation(
            "listDeadDeliveries", method: .get, path: "/webhook-deliveries", scope: .webhooksRead,
            command: .webhookDead,
            inputs: [.optional("webhook", as: .positional("ID"), meaning: "of this endpoint alone")],
            response: .object([APIMember("deliveries", schema: .list(.record))])),
        APIOperation(
            "retryDeliveries", method: .post, path: "/webhook-deliveries/retry", scope: .webhooksWrite,
            command: .webhookRetry, fixedWords: ["--all"],
            response: .object([APIMember("retried", schema: .count)])),
        APIOperation(
            "getWebhookKey", method: .get, path: "/keys/webhook", scope: .webhooksRead, command: .webhookKey,
            response: keys),
        APIOperation(
            "rotateWebhookKey", method: .post, path: "/keys/webhook/rotation", scope: .webhooksWrite,
            command: .webhookKey, fixedWords: ["--rotate"], response: keys),
    ]

    private static let members = [
        APIMember("id", schema: .text), APIMember("url", schema: .text),
        APIMember("app", schema: .nullable(.text)), APIMember("events", schema: .list(.text)),
        APIMember("addresses", schema: .choice(["public", "any"])), APIMember("created", schema: .time),
    ]
    private static let endpoint = APISchema.object(members)
    private static let listed = APISchema.object(members + [APIMember("dropped", schema: .count)])

    private static let keys = APISchema.object([APIMember("keys", schema: .list(.record))])
}

extension APIInput {
    fileprivate static let webhook = required(
        "webhook", as: .positional("ID"), meaning: "the endpoint's id")
}
