import CountersignHTTP
import CountersignServer
import CountersignWire

/// What the API reads of a request's head.
enum APIRouter {
    /// A page of another site whose name was made to lead here names its own host.
    static func checkHost(of request: Request, configuration: Configuration) throws(APIProblem) {
        let authority = request.head.span.extracting(request.authority.range).text
        guard let host = HostPort.split(authority)?.host.lowercased(),
            host == "localhost" || NetworkAddress(text: host) != nil
                || host == configuration.admin?.host.lowercased() || configuration.adminHosts.contains(host)
        else {
            throw APIProblem(
                421, code: "host",
                detail: "Host `\(authority)`: expected an address, localhost, or a name of --admin or "
                    + "--admin-hosts")
        }
    }

    static func document(for request: Request) throws(APIProblem) -> ServerResponse {
        guard request.matches(request.method, text: "GET") || request.matches(request.method, text: "HEAD")
        else {
            throw otherMethod(allowed: ["GET", "HEAD"])
        }
        return ServerResponse(status: 200, type: "application/json", body: OpenAPIDocument.bytes)
    }

    static func otherMethod(allowed: [String]) -> APIProblem {
        let names = allowed.joined(separator: ", ")
        return APIProblem(
            405, code: "method", detail: "expected one of \(names)",
            fields: [ServerResponse.Field("Allow", value: names)])
    }

    static func segments(of path: Substring) throws(APIProblem) -> [String] {
        var segments: [String] = []
        for part in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let text = PercentEncoding.decodedText(part), !text.isEmpty else {
                throw APIProblem(404, code: "not-found", detail: "the path has an empty or malformed segment")
            }
            segments.append(text)
        }
        return segments
    }

    static let noPath = APIProblem(
        404, code: "not-found", detail: "no such path; /api/openapi.json lists them")

    static func call(at segments: [String], for request: Request) throws(APIProblem) -> APICall {
        let found = APIOperation.all.compactMap { operation in
            operation.match(segments).map { APICall(operation, values: $0) }
        }
        guard !found.isEmpty else { throw noPath }
        var method = request.head.span.extracting(request.method.range).text
        if method == "HEAD" { method = "GET" }
        guard let match = found.first(where: { $0.operation.method.rawValue == method }) else {
            let names = found.map(\.operation.method.rawValue)
            throw otherMethod(allowed: names + (names.contains("GET") ? ["HEAD"] : []))
        }
        return match
    }

    static func checkType(of request: Request) throws(APIProblem) {
        let type = request.value(of: .contentType).map { request.head.span.extracting($0.range).text } ?? ""
        let media = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard media == "application/json" else {
            throw APIProblem(415, code: "type", detail: "Content-Type `\(type)`: expected application/json")
        }
    }

    /// What `If-Match` names; nil without it.
    static func matchedTag(of request: Request, by operation: APIOperation) throws(APIProblem) -> String? {
        guard request.count(of: "if-match") > 0 else { return nil }
        guard operation.reading != nil else {
            throw APIProblem(
                400, code: "invalid", detail: "If-Match: \(operation.id) replaces nothing that has a tag")
        }
        guard let field = request.value(of: "if-match") else {
            throw APIProblem(400, code: "invalid", detail: "If-Match: expected once")
        }
        let text = request.head.span.extracting(field.range).text
        guard text.utf8.count == 18, text.hasPrefix("\""), text.hasSuffix("\""),
            text.dropFirst().dropLast().utf8.allSatisfy({ ASCII.isDigit($0) || (0x61...0x66).contains($0) })
        else {
            throw APIProblem(400, code: "invalid", detail: "If-Match: expected one ETag of this API")
        }
        return text
    }

    static func idempotencyKey(of request: Request) throws(APIProblem) -> String? {
        guard request.names.contains(.idempotencyKey) else { return nil }
        let text = request.value(of: .idempotencyKey).map { request.head.span.extracting($0.range).text }
        guard let text, (1...128).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw APIProblem(
                400, code: "invalid",
                detail: "Idempotency-Key: expected one of 1 to 128 visible ASCII characters")
        }
        return text
    }
}

/// An operation, with the values in its path.
final class APICall: Sendable {
    let operation: APIOperation
    let values: [String: String]

    init(_ operation: APIOperation, values: [String: String]) {
        self.operation = operation
        self.values = values
    }
}
