// swift-format-ignore-file
// swift-openapi-runtime names these, and documents them. Shapes of swift-openapi-runtime 1.8, as far as
// Examples/OpenAPIRuntime uses it; see README.md. Source: its documentation.
import Foundation
import HTTPTypes

public final class HTTPBody: Sendable {
    public convenience init(_ bytes: [UInt8]) { self.init() }
    private init() {}
}
extension Data {
    public init(collecting body: HTTPBody, upTo maxBytes: Int) async throws { self.init() }
}
public protocol ClientTransport: Sendable {
    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?)
}
