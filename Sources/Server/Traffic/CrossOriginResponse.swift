import CountersignGate
import CountersignHTTP
import CountersignWire

/// The fields by which a browser lets a page read a response. Source: Fetch Standard, "CORS protocol".
enum CrossOriginResponse {
    /// Seconds for which a browser may keep the answer to a preflight request: a change of the policy counts
    /// everywhere after them.
    private static let maxAge = 600
    /// The most bytes of a list of names that is sent back.
    private static let mostNames = 2_048
    private static let exposed =
        "content-digest, countersign-event, idempotency-keys-kept, countersign-replayed, countersign-update, "
        + "idempotency-key, "
        + "ratelimit, ratelimit-policy, retry-after, signature, signature-input"

    /// The answer to a preflight request of a page that may call.
    static func preflight(_ grant: CrossOriginGrant, for request: Request) -> ServerResponse {
        var response = ServerResponse(status: 204, type: "", body: [])
        response.fields = allowance(grant)
        for (asked, answered) in [
            ("access-control-request-method", "Access-Control-Allow-Methods"),
            ("access-control-request-headers", "Access-Control-Allow-Headers"),
        ] as [(StaticString, String)] {
            if let names = names(asked, of: request) {
                response.fields.append(ServerResponse.Field(answered, value: names))
            }
        }
        response.fields.append(ServerResponse.Field("Access-Control-Max-Age", value: String(maxAge)))
        response.fields.append(
            ServerResponse.Field(
                "Vary", value: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"))
        return response
    }

    /// The fields of any other response to that page. None if the request names no origin; the response then
    /// says that it depends on one.
    static func fields(for request: Request, by rules: CrossOriginRules) -> [ServerResponse.Field] {
        guard !rules.isEmpty else { return [] }
        let vary = ServerResponse.Field("Vary", value: "Origin")
        guard let origin = request.value(of: "origin"),
            let grant = rules.grant(to: request.head.span.extracting(origin.range))
        else { return [vary] }
        return fields(of: grant)
    }

    /// The same for a page whose grant is known.
    static func fields(of grant: CrossOriginGrant) -> [ServerResponse.Field] {
        allowance(grant) + [
            ServerResponse.Field("Access-Control-Expose-Headers", value: exposed),
            ServerResponse.Field("Vary", value: "Origin"),
        ]
    }

    private static func allowance(_ grant: CrossOriginGrant) -> [ServerResponse.Field] {
        var fields = [ServerResponse.Field("Access-Control-Allow-Origin", value: grant.origin)]
        if grant.allowsCredentials {
            fields.append(ServerResponse.Field("Access-Control-Allow-Credentials", value: "true"))
        }
        return fields
    }

    /// The names that a preflight request asks for: the origin decides, so what it asks for is allowed. Nil
    /// for what is no list of tokens.
    private static func names(_ field: StaticString, of request: Request) -> String? {
        guard let slice = request.value(of: field), slice.count > 0, slice.count <= mostNames else {
            return nil
        }
        let text = String(decoding: request.head[slice.range], as: UTF8.self)
        let isList = text.utf8.allSatisfy { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-_, ".utf8.contains(byte)
        }
        return isList ? text : nil
    }
}
