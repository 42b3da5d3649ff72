import CountersignWire

extension APIRequest {
    /// The same with these at the end of its query, in their order, percent-encoded: `["q": "crème brûlée"]`.
    public func adding(query: KeyValuePairs<String, String>) -> APIRequest {
        guard !query.isEmpty else { return self }
        let pairs = query.map { "\(APIRequest.encoded($0.key))=\(APIRequest.encoded($0.value))" }
        var request = self
        request.path += (path.contains("?") ? "&" : "?") + pairs.joined(separator: "&")
        return request
    }

    /// All but unreserved characters as `%XX`; a space too, since `+` is one to some servers only. Source: RFC 3986 §2.1.
    private static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        let plain = Array(text.utf8)
        Percent.encode(plain.span, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
