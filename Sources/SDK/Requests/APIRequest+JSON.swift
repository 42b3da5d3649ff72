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
        let fields = [HeaderField("Content-Type", "application/json"), HeaderField("Accept", "application/json")]
        return APIRequest(method, path, fields: fields, body: .bytes(Array(data)))
    }
}

/// How values become JSON, and JSON values.
public struct JSONCoding: Sendable {
    /// Writes.
    public var encoder: JSONEncoder
    /// Reads.
    public var decoder: JSONDecoder

    /// A pair of one's own. Neither may be changed after it was handed over.
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
}
