/// Takes TLS's numbers and vectors off bytes, one after the other; nil once there are too few. Source: RFC 8446 §3.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// A number of so many bytes, the biggest first.
    mutating func number(_ size: Int) -> Int? { take(size)?.reduce(0) { $0 << 8 | Int($1) } }

    /// Bytes behind their count, which is a number of so many bytes.
    mutating func vector(_ size: Int) -> [UInt8]? { number(size).flatMap { take($0) } }
}
