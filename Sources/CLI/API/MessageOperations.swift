import CountersignAuthority
import CountersignServer
import CountersignTrust
import CountersignWire

/// What clients are handed: the texts of refusals, and pin manifests.
extension APIOperation {
    static let messages: [APIOperation] = [
        APIOperation(
            "listMessages", method: .get, path: "/apps/{app}/messages", scope: .appsRead,
            command: .appMessages, inputs: [.app, release], fixedWords: ["--list"],
            response: .object([
                APIMember("app", schema: .text),
                APIMember(
                    "messages",
                    schema: .list(
                        .object([
                            APIMember("release", schema: .nullable(.text)), APIMember("language", schema: .text),
                            APIMember("texts", schema: .map(.text)),
                        ]))),
            ])),
        APIOperation(
            "setMessages", method: .put, path: "/apps/{app}/messages", scope: .appsWrite,
            command: .appMessages,
            inputs: [
                .app, language, release,
                .required(
                    "texts", as: .document(.option("file")), schema: .map(.text),
                    meaning: "a JSON object of texts by refusal code, in place of all in that language"),
            ], response: changed),
        APIOperation(
            "removeMessages", method: .delete, path: "/apps/{app}/messages", scope: .appsWrite,
            command: .appMessages, inputs: [.app, language, release], fixedWords: ["--remove"],
            response: changed),
    ]

    static let pins: [APIOperation] = [
        APIOperation(
            "listPins", method: .get, path: "/pins", scope: .appsRead, command: .pinsList,
            response: .object([
                APIMember(
                    "manifests",
                    schema: .list(
                        .object([
                            APIMember("app", schema: .text), APIMember("version", schema: .count),
                            APIMember("not_before", schema: .time), APIMember("not_after", schema: .time),
                            APIMember("hosts", schema: .list(.record)),
                        ])))
            ])),
        APIOperation(
            "publishPins", method: .post, path: "/pins", scope: .appsWrite, command: .pinsPublish,
            inputs: [
                .required(
                    "manifest", as: .document(.positional("FILE")), schema: .record,
                    meaning: "what `countersign pins sign` wrote"),
                .required(
                    "public_key", as: .option("public-key"),
                    meaning: "the key that has signed it, as `countersign pins keygen` printed it"),
            ], status: 201,
            response: .object([APIMember("app", schema: .text), APIMember("version", schema: .count)])),
    ]

    private static let language = APIInput.required(
        "language", as: .option("language"), meaning: "zh, pt-br; `default` for all other languages")
    private static let release = APIInput.optional(
        "release", as: .option("release"), meaning: "a key id: for callers of this release alone")

    private static let changed = APISchema.object([
        APIMember("app", schema: .text), APIMember("release", schema: .nullable(.text)),
        APIMember("language", schema: .text), APIMember("texts", schema: .count),
    ])
}
