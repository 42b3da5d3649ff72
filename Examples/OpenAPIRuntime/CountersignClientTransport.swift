// Carries what a client made by swift-openapi-generator asks for. Written for swift-openapi-runtime 1.8 and
// swift-http-types 1.3. Compiled here against declarations of our own, and never run: neither is there where
// this package is tested.
//
//     let api = APIProtocolClient(serverURL: url, transport: CountersignClientTransport(client: client))
import Countersign
import Foundation
import HTTPTypes
import OpenAPIRuntime

/// Requests are signed, renewed and repeated as ``APISending/data(for:progress:)`` does it. Their
/// bodies are collected: each one's digest is signed before its first byte goes out.
struct CountersignClientTransport: ClientTransport {
    let client: CountersignClient
    /// Bytes of a request's body, at most.
    var largestBody = 16 << 20

    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?) {
        let path = request.path ?? "/"
        let base = baseURL.absoluteString
        let url = (base.hasSuffix("/") ? String(base.dropLast()) : base) + path
        var own = APIRequest(APIMethod(request.method.rawValue), url)
        own.fields = request.headerFields.map { HeaderField($0.name.rawName, value: $0.value) }
        if let body { own.body = .bytes(try await [UInt8](Data(collecting: body, upTo: largestBody))) }
        let (data, answer) = try await client.data(for: own)
        var fields = HTTPFields()
        for field in answer.fields {
            guard let name = HTTPTypes.HTTPField.Name(field.name) else { continue }
            fields.append(
                HTTPTypes.HTTPField(name: name, value: String(decoding: field.value, as: UTF8.self)))
        }
        let response = HTTPResponse(status: HTTPResponse.Status(code: answer.status), headerFields: fields)
        return (response, data.isEmpty ? nil : HTTPBody([UInt8](data)))
    }
}
