import CountersignTransport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension APIRequest {
    /// A request that carries `value` as JSON, and asks for JSON.
    public static func json(
        _ method: APIMethod, _ path: String, _ value: some Encodable, coding: JSONCoding = .standard
    ) throws(CountersignError) -> APIRequest {
        let data: Data
        do {
            data = try coding.encoder.encode(value)
        } catch {
            throw .encoding("\(error)")
        }
        let fields = [
            HeaderField("Content-Type", value: "application/json"),
            HeaderField("Accept", value: "application/json"),
        ]
        return APIRequest(method, path, fields: fields, body: .bytes(Array(data)))
    }
}

/// How values become JSON, and JSON values.
public struct JSONCoding: Sendable {
    /// Encodes values.
    public var encoder: JSONEncoder
    /// Decodes values.
    public var decoder: JSONDecoder

    /// A custom pair. Do not change either after passing it.
    public init(encoder: JSONEncoder, decoder: JSONDecoder) {
        self.encoder = encoder
        self.decoder = decoder
    }

    /// Foundation's own, with names as they are in Swift.
    public static let standard = JSONCoding(encoder: JSONEncoder(), decoder: JSONDecoder())

    /// `orderNumber` in Swift is `order_number` in JSON, and times are whole Unix seconds.
    public static let snakeCase: JSONCoding = {
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .secondsSince1970
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .secondsSince1970
        return JSONCoding(encoder: encoder, decoder: decoder)
    }()

    /// The value in a response's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to
    /// 299.
    func value<Value: Decodable>(
        _ type: Value.Type, from data: Data, of response: APIResponse
    ) throws(CountersignError) -> Value {
        guard response.isSuccess else { throw .status(response, body: Array(data)) }
        do {
            return try decoder.decode(type, from: data)
        } catch {
            throw .decoding("\(error)")
        }
    }
}
