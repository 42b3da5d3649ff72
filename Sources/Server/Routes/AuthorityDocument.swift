import CountersignHTTP
import CountersignWire

/// The OpenAPI 3.1 document of the authority's routes, made from ``RouteDescription/all``.
package enum AuthorityDocument {
    package static func json(below prefix: String) -> JSONValue {
        var paths: [(name: String, value: JSONValue)] = []
        for route in RouteDescription.all {
            paths.append(
                (route.template, .object([("\(route.method)".lowercased(), route.description)])))
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Countersign authority", "version": .string(Product.version),
                "description": .string(
                    "Sign-up, login and sessions of an app's clients. Requests are signed as the app's "
                        + "policy says; responses to message-signatures are signed, too. Members that a "
                        + "route does not read are ignored. Times are whole Unix seconds, bytes are "
                        + "base64url. HEAD is accepted where GET is."),
            ],
            "servers": [["url": .string(prefix)]],
            "paths": .object(paths),
            "components": [
                "securitySchemes": .object(
                    Route.Admission.allCases.compactMap { admission in
                        admission.meaning.map { meaning in
                            (
                                name: "\(admission)",
                                value: [
                                    "type": "apiKey", "in": "header", "name": "Signature",
                                    "description": .string(meaning),
                                ]
                            )
                        }
                    }),
                "schemas": ["Problem": refusal.json],
            ],
        ]
    }

    /// A refusal, as `RefusalResponse` writes it for clients of message-signatures.
    private static let refusal = APISchema.open([
        APIMember("type", schema: .text), APIMember("title", schema: .text),
        APIMember("status", schema: .integer(400...599)),
        APIMember(
            "code", schema: .text, presence: .optional,
            meaning: "stable; docs/protocol.md lists them. Responses that no refusal made have none"),
        APIMember("instance", schema: .text, presence: .optional, meaning: "the event's id in the log"),
        APIMember("detail", schema: .text, presence: .optional),
    ])
}

extension Route.Admission {
    /// What a caller must prove; nil for all callers.
    fileprivate var meaning: String? {
        switch self {
        case .anyone: nil
        case .release: "a signature by a live release's key (RFC 9421, or another scheme of the app)"
        case .session: "a signature by a live session's key, or its token"
        case .endingSession: "the same, also with an expired token"
        }
    }
}

extension RouteDescription {
    fileprivate var description: JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("operationId", .string(id)), ("summary", .string(summary)),
            ("security", .array(admission.meaning == nil ? [] : [["\(admission)": []]])),
            ("parameters", .array(parameters.map(\.json))),
        ]
        if let body {
            members.append(
                (
                    "requestBody",
                    ["required": true, "content": ["application/json": ["schema": body.json]]]
                ))
        }
        let content: JSONValue = ["schema": response.json]
        let success: JSONValue = [
            "description": .string(summary), "content": .object([(name: contentType, value: content)]),
        ]
        let refused: JSONValue = [
            "description": "a refusal",
            "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
        ]
        members.append(("responses", .object([(String(status), success), ("default", refused)])))
        return .object(members)
    }
}

extension Route {
    /// `GET openapi.json`.
    static func document(below prefix: String) -> Route {
        let body = Array((AuthorityDocument.json(below: prefix).text + "\n").utf8)
        return Route(.document) { _ in
            RouteResult(
                ServerResponse(
                    status: 200, type: "application/json",
                    fields: [.init("Cache-Control", value: "public, max-age=300")], body: body))
        }
    }
}
