import CountersignAuthority
import CountersignWire

/// What one of the authority's routes takes and returns. The table ``all`` is what routes are made from
/// (``Route/init(_:answer:)``) and what the OpenAPI document is made from. Source: docs/protocol.md, "The
/// authority's routes".
struct RouteDescription: Sendable {
    /// Unique, such as `login.start`.
    let id: String
    let method: StaticString
    /// Below the prefix, beginning with `/`. A last part `*` takes any one part.
    let path: StaticString
    let admission: Route.Admission
    /// What the metrics count of it; nil if they do not.
    var operation: AuthorityOperation?
    let summary: String
    /// The part in place of `*`, and parameters of the query.
    var parameters: [RouteParameter] = []
    /// Nil for routes that read no body.
    var body: APISchema?
    var status = 200
    var contentType = "application/json"
    let response: APISchema

    /// In the order of docs/protocol.md.
    static let all = [
        health, time, registrationStart, registrationFinish, loginStart, loginFinish, loginPassword, token,
        logout, session, sessions, sessionRevoke, passwordStart, passwordFinish, uploads, pins, jwks,
        document,
    ]

    /// The path with the parameter in place of `*` in braces.
    var template: String {
        let text = "\(path)"
        guard text.hasSuffix("*"), let parameter = parameters.first(where: { $0.place == .path }) else {
            return text
        }
        return text.dropLast() + "{\(parameter.name)}"
    }
}

extension RouteDescription {
    static let health = RouteDescription(
        id: "health", method: "GET", path: "/health", admission: .anyone,
        summary: "Say that the server serves",
        response: .object([APIMember("status", schema: .choice(["ok"]))]))

    static let time = RouteDescription(
        id: "time", method: "GET", path: "/time", admission: .anyone,
        summary: "Tell the authority's clock, signed",
        parameters: [
            .init(
                "nonce", in: .query, schema: .pattern("^[!-~]{8,64}$"),
                meaning: "is repeated in the response, which proves that it was made for this request")
        ],
        response: .object([
            APIMember("time", schema: .time), APIMember("nonce", schema: .text, presence: .optional),
        ]))

    static let pins = RouteDescription(
        id: "pins", method: "GET", path: "/pins/*", admission: .anyone,
        summary: "Return an app's signed pin manifest, as it was published",
        parameters: [.init("app", in: .path, schema: .text, meaning: "the app's name")],
        response: .open([]))

    static let jwks = RouteDescription(
        id: "jwks", method: "GET", path: "/jwks", admission: .anyone,
        summary: "Return the public keys of assertions", contentType: "application/jwk-set+json",
        response: .object([APIMember("keys", schema: .list(.open([])))]))

    static let document = RouteDescription(
        id: "openapi", method: "GET", path: "/openapi.json", admission: .anyone,
        summary: "Return this document", response: .open([]))

    static let uploads = RouteDescription(
        id: "uploads", method: "POST", path: "/uploads", admission: .session,
        summary: "Issue a ticket for one upload",
        body: .open([
            APIMember("method", schema: .choice(["PUT", "POST", "PATCH"])),
            APIMember("target", schema: .sized(1...UploadRequest.longestTarget)),
            APIMember("content_type", schema: .nullable(.sized(1...256)), presence: .optional),
            APIMember("length", schema: .count), APIMember("content_digest", schema: .sized(54...54)),
            APIMember("expires_in", schema: .integer(1...86_400)),
        ]),
        status: 201,
        response: .object([APIMember("ticket", schema: .text), APIMember("expires", schema: .time)]))
}

/// A part of a route's path, or a parameter of its query.
struct RouteParameter: Sendable {
    enum Place: String, Sendable { case path, query }

    let name: String
    let place: Place
    let schema: APISchema
    let meaning: String

    init(_ name: String, in place: Place, schema: APISchema, meaning: String) {
        self.name = name
        self.place = place
        self.schema = schema
        self.meaning = meaning
    }

    var json: JSONValue {
        [
            "name": .string(name), "in": .string(place.rawValue), "required": .bool(place == .path),
            "schema": schema.json, "description": .string(meaning),
        ]
    }
}
