import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

extension APIOperation {
    static let releases: [APIOperation] = [
        APIOperation(
            "listReleases", method: .get, path: "/apps/{app}/releases", scope: .releasesRead,
            command: .releaseList, inputs: [.app],
            response: .object([
                APIMember("app", schema: .text),
                APIMember("releases", schema: .list(.object(listed))),
            ])),
        APIOperation(
            "addRelease", method: .post, path: "/apps/{app}/releases", scope: .releasesWrite,
            command: .releaseAdd,
            inputs: [
                .app, .required("platform", as: .option("platform"), meaning: "ios, android, …"),
                .required("version", as: .option("version"), meaning: "as its clients write it"),
                .optional("scheme", as: .option("scheme"), schema: .choice(schemes), meaning: "how it signs"),
                .optional("key_id", as: .option("key-id"), meaning: "of a key that is brought along"),
                .optional(
                    "algorithm", as: .option("algorithm"), schema: .choice(algorithms),
                    meaning: "message-signatures: what the key is for"),
                .optional(
                    "secret", as: .standardInput(flag: "secret-stdin"),
                    meaning: "of a key that is brought along; without one, a secret is made"),
            ], status: 201,
            response: .object(
                [
                    APIMember("key_id", schema: .text),
                    APIMember("secret", schema: .text, presence: .optional),
                    APIMember("private_key", schema: .text, presence: .optional),
                    APIMember("authority_key", schema: .text),
                    APIMember("next_authority_key", schema: .text), APIMember("app", schema: .text),
                    APIMember("platform", schema: .text), APIMember("version", schema: .text),
                    APIMember("scheme", schema: .text),
                    APIMember("algorithm", schema: .text, presence: .optional),
                    APIMember("warnings", schema: .list(.text), presence: .optional),
                ])),
        APIOperation(
            "getReleasePolicy", method: .get, path: "/releases/{key}/policy", scope: .releasesRead,
            command: .releasePolicy, inputs: [.key], response: policyOfRelease),
        APIOperation(
            "changeReleasePolicy", method: .patch, path: "/releases/{key}/policy", scope: .releasesWrite,
            command: .releasePolicy, inputs: [.key, .changedSettings], response: policyOfRelease,
            reading: "getReleasePolicy"),
        APIOperation(
            "addNextKey", method: .post, path: "/releases/{key}/next-key", scope: .releasesWrite,
            command: .releaseRotate,
            inputs: [
                .key,
                .optional(
                    "algorithm", as: .option("algorithm"), schema: .choice(algorithms),
                    meaning: "message-signatures: what the next key is for"),
                .optional(
                    "secret", as: .standardInput(flag: "secret-stdin"),
                    meaning: "that is brought along; without one, a secret is made"),
            ], status: 201, response: rotation),
        APIOperation(
            "promoteNextKey", method: .put, path: "/releases/{key}/next-key", scope: .releasesWrite,
            command: .releaseRotate, inputs: [.key], fixedWords: ["--promote"], response: rotation),
        APIOperation(
            "removeNextKey", method: .delete, path: "/releases/{key}/next-key", scope: .releasesWrite,
            command: .releaseRotate, inputs: [.key], fixedWords: ["--cancel"], response: rotation),
    ]

    static let retirements: [APIOperation] = [
        APIOperation(
            "getImpact", method: .get, path: "/releases/{key}/impact", scope: .releasesRead,
            command: .releaseImpact,
            inputs: [
                .key,
                .optional("days", as: .option("days"), schema: .integer(1...400), meaning: "30 without it"),
            ],
            response: .object([
                APIMember("key_id", schema: .text), APIMember("app", schema: .text),
                APIMember("platform", schema: .text), APIMember("version", schema: .text),
                APIMember("scheme", schema: .text), APIMember("stage", schema: .text),
                APIMember("accepted", schema: .count), APIMember("sent_away", schema: .count),
                APIMember("app_accepted", schema: .count), APIMember("share_percent", schema: .count),
                APIMember("last_accepted", schema: .nullable(.time)),
                APIMember(
                    "days",
                    schema: .list(
                        .object([
                            APIMember("day", schema: .text), APIMember("accepted", schema: .count),
                            APIMember("sent_away", schema: .count),
                        ]))),
                APIMember("sessions", schema: .count), APIMember("platform_sessions", schema: .count),
                APIMember("unknown_sessions", schema: .count),
            ])),
        APIOperation(
            "retireRelease", method: .put, path: "/releases/{key}/retirement", scope: .releasesWrite,
            command: .releaseRetire,
            inputs: [
                .key,
                .required("at", as: .option("at"), meaning: "now, +7d, 2026-11-29, RFC 3339 or Unix seconds"),
                .required("update_url", as: .option("update-url"), schema: .text, meaning: "the new version"),
                .optional("warn_at", as: .option("warn-at"), meaning: "from when on its answers say so"),
                .optional(
                    "read_only_at", as: .option("read-only-at"), meaning: "from when on it may only read"),
                .optional("percent", as: .option("percent"), meaning: "10@TIME,50@TIME,100@TIME"),
            ], response: .record),
        APIOperation(
            "undoRetirement", method: .delete, path: "/releases/{key}/retirement", scope: .releasesWrite,
            command: .releaseRetire, inputs: [.key], fixedWords: ["--undo"],
            response: .object([
                APIMember("key_id", schema: .text), APIMember("retired_at", schema: .nullable(.time)),
            ])),
    ]

    private static let schemes = SchemeName.allCases.map(\.rawValue)
    private static let algorithms = KeyAlgorithm.allCases.map(\.rawValue)

    private static let listed: [APIMember] = [
        APIMember("key_id", schema: .text), APIMember("platform", schema: .text),
        APIMember("version", schema: .text), APIMember("scheme", schema: .text),
        APIMember("algorithm", schema: .nullable(.text)), APIMember("next_key", schema: .boolean),
        APIMember("next_algorithm", schema: .nullable(.text)), APIMember("policy", schema: .map(.text)),
        APIMember("created", schema: .time), APIMember("retired_at", schema: .nullable(.time)),
        APIMember("update_url", schema: .nullable(.text)),
        APIMember("retirement", schema: .nullable(.record)),
    ]

    private static let policyOfRelease = APISchema.object([
        APIMember("key_id", schema: .text), APIMember("app", schema: .text),
        APIMember(
            "policy",
            schema: .list(
                .object([
                    APIMember("key", schema: .text), APIMember("value", schema: .text),
                    APIMember("from", schema: .choice(["release", "app", "default"])),
                    APIMember("meaning", schema: .text),
                ]))),
    ])

    private static let rotation = APISchema.object([
        APIMember("key_id", schema: .text), APIMember("next_key", schema: .boolean),
        APIMember("secret", schema: .text, presence: .optional),
        APIMember("private_key", schema: .text, presence: .optional),
        APIMember("warnings", schema: .list(.text), presence: .optional),
    ])
}
