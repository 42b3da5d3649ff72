import CountersignWire

/// Paths of the console. Each part is encoded, so that a name is one segment whatever it contains.
enum ConsolePath {
    static func path(_ segments: String..., query: [(name: String, value: String)] = []) -> String {
        var bytes = Array("/console".utf8)
        for segment in segments {
            bytes.append(UInt8(ascii: "/"))
            PercentEncoding.encode(Array(segment.utf8).span, into: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self) + ConsolePath.query(query)
    }

    static func query(_ pairs: [(name: String, value: String)]) -> String {
        var bytes: [UInt8] = []
        for (name, value) in pairs {
            bytes.append(bytes.isEmpty ? UInt8(ascii: "?") : UInt8(ascii: "&"))
            PercentEncoding.encode(Array(name.utf8).span, into: &bytes)
            bytes.append(UInt8(ascii: "="))
            PercentEncoding.encode(Array(value.utf8).span, into: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
