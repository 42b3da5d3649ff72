import CountersignAuthority
import CountersignServer
import CountersignWire

extension APIOperation {
    static let messages: [APIOperation] = [
        APIOperation(
            "listMessages", method: .get, path: "/apps/{app}/messages", scope: .appsRead,
            command: .appMessages, inputs: [.app, release],
            response: .object([
                APIMember("app", schema: .text),
                APIMember(
                    "messages",
                    schema: .list(
                        .object([
                            APIMember("release", schema: .nullable(.text)),
                            APIMember("language", schema: .text),
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

    private static let language = APIInput.required(
        "language", as: .option("language"), meaning: "zh, pt-br; `default` for all other languages")
    private static let release = APIInput.optional(
        "release", as: .option("release"), meaning: "a key id: for callers of this release alone")

    private static let changed = APISchema.object([
        APIMember("app", schema: .text), APIMember("release", schema: .nullable(.text)),
        APIMember("language", schema: .text), APIMember("texts", schema: .count),
    ])
}
