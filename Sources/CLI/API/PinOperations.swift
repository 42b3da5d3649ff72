import CountersignAuthority
import CountersignServer
import CountersignWire

extension APIOperation {
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
}
