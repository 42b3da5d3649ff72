import CountersignAuthority
import CountersignServer
import CountersignWire

extension APIOperation {
    /// Every operation. Routing, validation, authorization and the OpenAPI document read this table alone.
    static let all: [APIOperation] =
        apps + routes + messages + pins + releases + retirements + accounts + sessions + audit + webhooks
        + server

    static let audit: [APIOperation] = [
        APIOperation(
            "listAudit", method: .get, path: "/audit", scope: .auditRead, command: .auditList,
            inputs: [
                .optional(
                    "after", as: .option("after"), schema: .count, meaning: "records behind this number"),
                .optional("limit", as: .option("last"), schema: .integer(1...500), meaning: "50 without it"),
                .optional(
                    "wait", as: .patience, schema: .integer(1...30),
                    meaning: "seconds to wait for a record, if there is none to show"),
            ], response: .object([APIMember("records", schema: .list(.record))])),
        APIOperation(
            "verifyAudit", method: .get, path: "/audit/verification", scope: .auditRead,
            command: .auditVerify,
            inputs: [
                .optional("noted", as: .option("noted"), meaning: "a head that was noted earlier: NUMBER:TAG")
            ],
            response: .object([
                APIMember("records", schema: .count), APIMember("head", schema: .nullable(.text)),
                APIMember("findings", schema: .list(.record)), APIMember("rows", schema: .record),
            ])),
    ]

    private static let refusal = APISchema.object([
        APIMember("event", schema: .text), APIMember("code", schema: .text), APIMember("time", schema: .time),
        APIMember("app", schema: .nullable(.text)), APIMember("release", schema: .nullable(.text)),
        APIMember("cause", schema: .nullable(.record)), APIMember("searched", schema: .boolean),
        APIMember("notes", schema: .list(.text)), APIMember("line", schema: .record),
    ])

    static let server: [APIOperation] = [
        APIOperation(
            "getVersion", method: .get, path: "/version", scope: .serverRead, command: .version,
            response: .object([APIMember("version", schema: .text)])),
        APIOperation(
            "listNodes", method: .get, path: "/nodes", scope: .serverRead, command: .nodes,
            response: .object([
                APIMember("change", schema: .count), APIMember("nodes", schema: .list(.record)),
                APIMember("differences", schema: .list(.record)),
                APIMember("replay_floor", schema: .nullable(.time)),
            ])),
        APIOperation(
            "getLastBackup", method: .get, path: "/backup", scope: .serverRead, command: .backupLast,
            response: .object([
                APIMember("own", schema: .boolean), APIMember("made", schema: .nullable(.time)),
                APIMember("age", schema: .nullable(.count)), APIMember("overdue", schema: .boolean),
                APIMember("bytes", schema: .nullable(.count)), APIMember("key", schema: .nullable(.text)),
                APIMember("audit_head", schema: .nullable(.text)),
            ])),
        APIOperation(
            "getLabRecord", method: .get, path: "/lab", scope: .serverRead, command: .labLast,
            response: .object([APIMember("run", schema: .nullable(.record))])),
        APIOperation(
            "getMeter", method: .get, path: "/meter", scope: .serverRead, command: .meter,
            inputs: [
                .optional("app", as: .positional("APP"), meaning: "of this app alone"),
                .optional("days", as: .option("days"), schema: .integer(1...400), meaning: "30 without it"),
            ], response: .record),
        APIOperation(
            "listRefusals", method: .get, path: "/refusals", scope: .serverRead, command: .refusals,
            inputs: [
                .optional("app", as: .option("app"), meaning: "of requests that name this app"),
                .optional("release", as: .option("release"), meaning: "of requests that name this key id"),
                .optional("code", as: .option("code"), meaning: "that ended with this code"),
                .optional("limit", as: .option("last"), schema: .integer(1...500), meaning: "50 without it"),
            ],
            response: .object([
                APIMember("refusals", schema: .list(refusal)),
                APIMember(
                    "causes",
                    schema: .list(
                        .object([
                            APIMember("code", schema: .text), APIMember("count", schema: .count),
                            APIMember("explained", schema: .count), APIMember("latest", schema: .time),
                        ]))),
                APIMember(
                    "kept_since",
                    schema: .nullable(
                        .object([
                            APIMember("proven", schema: .nullable(.time)),
                            APIMember("unproven", schema: .nullable(.time)),
                        ]))),
            ])),
        APIOperation(
            "getRefusal", method: .get, path: "/refusals/{event}", scope: .serverRead, command: .refusals,
            inputs: [
                .required("event", as: .option("id"), meaning: "the `instance` of a response")
            ], response: refusal),
        APIOperation(
            "getAnswerKeys", method: .get, path: "/keys/answer", scope: .serverRead, command: .answerKeyShow,
            response: .object([
                APIMember("authority_key", schema: .text), APIMember("next_authority_key", schema: .text),
                APIMember("next_made", schema: .time),
                APIMember("releases_without_next", schema: .list(.record)),
            ])),
        APIOperation(
            "getAssertionKeys", method: .get, path: "/keys/assertion", scope: .serverRead,
            command: .assertionKeys,
            response: .object([
                APIMember("current", schema: .text), APIMember("next", schema: .text),
                APIMember("listed", schema: .list(.text)),
            ])),
        APIOperation(
            "listTokens", method: .get, path: "/tokens", scope: .serverRead, command: .tokenList,
            response: .object([
                APIMember(
                    "tokens",
                    schema: .list(
                        .object([
                            APIMember("id", schema: .text), APIMember("name", schema: .text),
                            APIMember("kind", schema: .choice(["program", "console"])),
                            APIMember("scopes", schema: .list(.text)), APIMember("created", schema: .time),
                            APIMember("expires", schema: .nullable(.time)),
                            APIMember("expired", schema: .boolean),
                        ])))
            ])),
        APIOperation(
            "reload", method: .post, path: "/reload", scope: .serverWrite, command: .reload,
            response: .record, statusMeaning: .failure),
    ]
}
