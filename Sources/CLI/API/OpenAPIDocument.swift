import CountersignAuthority
import CountersignServer
import CountersignWire

/// The OpenAPI document of the admin API, made from the table of operations. Source: OpenAPI 3.1.
enum OpenAPIDocument {
    /// As the server sends it.
    static let bytes = json.bytes

    static var json: JSONValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "Countersign admin API", "version": .string(Product.version),
                "description": .string(
                    "Administration of a deployment, on its admin listener. "
                        + "Each operation is a command of the command line."),
                "license": ["name": "see the package"],
            ],
            "servers": [["url": .string(APIOperation.prefix)]],
            "security": [["token": []]],
            "tags": .array(tags.map { ["name": .string($0)] }),
            "paths": .object(paths),
            "components": [
                "securitySchemes": [
                    "token": [
                        "type": "http", "scheme": "bearer",
                        "description": "A token of `countersign token add`.",
                    ]
                ],
                "schemas": ["Problem": problem.json],
                "responses": .object(
                    APIProblem.statuses.map { status, meaning in
                        (
                            name: "Problem\(status)",
                            value: [
                                "description": .string(meaning),
                                "content": [
                                    "application/problem+json": [
                                        "schema": ["$ref": "#/components/schemas/Problem"]
                                    ]
                                ],
                            ]
                        )
                    }),
            ],
        ]
    }

    private static let problem = APISchema.object([
        APIMember("type", schema: .text), APIMember("title", schema: .text),
        APIMember("status", schema: .integer(400...599)), APIMember("code", schema: .text),
        APIMember("detail", schema: .text),
    ])

    private static var tags: [String] { Set(APIOperation.all.map(tag)).sorted() }

    private static func tag(of operation: APIOperation) -> String {
        String(operation.scope.rawValue.prefix { $0 != ":" })
    }

    private static var paths: [(name: String, value: JSONValue)] {
        var order: [String] = []
        for operation in APIOperation.all where !order.contains(operation.path) {
            order.append(operation.path)
        }
        return order.map { path in
            let operations = APIOperation.all.filter { $0.path == path }
            return (
                name: path,
                value: .object(operations.map { ($0.method.rawValue.lowercased(), json(of: $0)) })
            )
        }
    }

    private static func json(of operation: APIOperation) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("operationId", .string(operation.id)), ("tags", [.string(tag(of: operation))]),
            ("summary", .string(operation.command.summary)),
            (
                "description",
                .string(
                    "Scope \(operation.scopes(quotedBy: "`")). "
                        + "The command `countersign \(operation.command.name)`."
                )
            ),
        ]
        let parameters = parameters(of: operation)
        if !parameters.isEmpty { members.append(("parameters", .array(parameters))) }
        if let body = operation.bodySchema {
            members.append(
                (
                    "requestBody",
                    [
                        "required": .bool(operation.otherInputs.contains(where: \.isRequired)),
                        "content": ["application/json": ["schema": body.json]],
                    ]
                ))
        }
        members.append(("responses", .object(responses(of: operation))))
        return .object(members)
    }

    private static func parameters(of operation: APIOperation) -> [JSONValue] {
        var parameters = operation.inputs.filter { operation.isInPath($0) || !operation.method.hasBody }
            .map { input -> JSONValue in
                let isInPath = operation.isInPath(input)
                return [
                    "name": .string(input.name), "in": isInPath ? "path" : "query",
                    "required": .bool(isInPath || input.isRequired), "schema": input.schema.json,
                    "description": .string(input.meaning),
                ]
            }
        if operation.method == .post {
            parameters.append([
                "name": "Idempotency-Key", "in": "header", "required": false,
                "schema": ["type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"],
                "description": "A copy with the same key gets the answer of the first call.",
            ])
        }
        if operation.reading != nil {
            parameters.append([
                "name": "If-Match", "in": "header", "required": false,
                "schema": ["type": "string", "pattern": "^\"[0-9a-f]{16}\"$"],
                "description": "The ETag of what is to be replaced.",
            ])
        }
        return parameters
    }

    private static func responses(of operation: APIOperation) -> [(name: String, value: JSONValue)] {
        var statuses = [400, 401, 403, 404, 409, 421, 503]
        if operation.reading != nil { statuses.append(412) }
        if operation.method.hasBody { statuses += [413, 415] }
        if operation.method == .post { statuses.append(422) }
        let success: (name: String, value: JSONValue) = (
            name: String(operation.status),
            value: [
                "description": "Done",
                "content": ["application/json": ["schema": operation.response.json]],
            ]
        )
        return [success]
            + statuses.sorted().map {
                (name: String($0), value: ["$ref": .string("#/components/responses/Problem\($0)")])
            }
    }
}

extension Command {
    static let openAPI = Command(
        words: ["openapi"], summary: "print an OpenAPI document",
        positionals: [Positional(name: "admin|authority", presence: .optional)],
        notes: """
            Of the admin API, which a running server has at /api/openapi.json of its admin listener, or of the
            authority's routes for apps, which it has at /countersign/v1/openapi.json.
            """
    ) { (run) throws(OperationalError) in
        switch run.arguments.positional("admin|authority") ?? "admin" {
        case "admin": try run.console.print(OpenAPIDocument.json.prettyText)
        case "authority":
            try run.console.print(AuthorityDocument.json(below: Configuration().prefix).prettyText)
        case let word:
            throw OperationalError(.usage, message: "openapi `\(word)`: expected admin or authority")
        }
        return .success
    }
}
