import CountersignWire

/// Makes random heads: half of them usual ones, and half with up to three of them damaged at random places.
struct HeadSource {
    private var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    private static let methods = [
        "GET", "GET", "POST", "PUT", "HEAD", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "TRACE", "PRI", "get",
        "A",
    ]
    private static let targets = [
        "/", "/api/v1/orders?page=2", "/a/b/c", "/?", "/a?b?c", "/%2F..//a;b=c", "*", "http://h/a", "",
        "/" + String(repeating: "a", count: 70),
    ]
    private static let names = [
        "Host", "Accept", "Accept-Encoding", "accept-language", "Accept-", "Content-Length", "Content-Type",
        "Content-Digest", "Content-Encoding", "Transfer-Encoding", "Connection", "Keep-Alive", "Close",
        "Expect", "TE", "Trailer", "Upgrade", "HTTP2-Settings", "Proxy-Connection", "Proxy-Authenticate",
        "Proxy-Authorization", "Authorization", "Countersign-Release", "Countersign-Ticket", "Countersign",
        "Countersign-A", "Countersigns", "Countersign.A", "Signature", "Signature-Input", "Idempotency-Key",
        "Traceparent", "User-Agent", "Date", "X-Amz-Date", "X-Amz-Content-SHA256", "X-Auth-Version",
        "X-Auth-Client-ID", "X-Auth-Signature", "X-Auth-Timestamp", "X-A", "A", "Cookie", "X-Forwarded-For",
        "a_b", "a!b", "X-A-Very-Long-Name-Of-A-Field-That-Is-Unknown", "Server", "Set-Cookie",
        "Signature-Inpuz",
    ]
    /// Those that a head may have twice, and with any value.
    private static let usualNames = names.filter { name in
        let unusual = [
            "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Expect", "a_b",
            "a!b", "Countersign.A",
        ]
        return !unusual.contains(name)
    }
    private static let values = [
        "", " ", "h", "127.0.0.1:8080", "[::1]:80", "h_a.example", "5", "0", "007", "1234567890123456789",
        "chunked", "Chunked", "gzip, chunked", "keep-alive", "Keep-Alive", "close", "close, te",
        "keep-alive, close", "x-a", "100-continue", "100-Continue", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a", "application/json", "a\tb", "a  ", "\u{FC}\u{20AC}",
        "sig=(\"@method\");nonce=\"abcdefghijklmnop\"",
        String(repeating: "v", count: 100),
    ]
    /// The bytes that mean something to a parser, and their neighbours.
    private static let marks: [UInt8] = [
        0, 9, 10, 10, 13, 13, 31, 32, 33, 35, 45, 46, 47, 48, 57, 58, 58, 63, 64, 65, 90, 91, 95, 96, 97, 122,
        123, 126, 127, 128, 173, 186, 193, 255,
    ]

    private mutating func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    private mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    mutating func request() -> [UInt8] {
        let isUsual = below(2) == 0
        var text = isUsual ? "GET /a?b" : "\(one(of: HeadSource.methods)) \(one(of: HeadSource.targets))"
        text += isUsual || below(8) > 0 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n"
        if isUsual || below(8) > 0 { text += "Host: h\r\n" }
        if below(4) == 0 { text += "Content-Length: \(below(20))\r\n" }
        return head(text, isUsual: isUsual)
    }

    mutating func response() -> [UInt8] {
        let isUsual = below(2) == 0
        let status = isUsual ? 200 : one(of: [200, 204, 304, 404, 500, 100, 101, 599, 600, 99])
        let version = isUsual || below(8) > 0 ? "1.1" : "1.0"
        var text =
            "HTTP/\(version) \(status)\(one(of: [" OK", " OK", " ", "", " Not Found", "x", " \t"]))\r\n"
        if below(2) == 0 { text += "Content-Length: \(below(20))\r\n" }
        return head(text, isUsual: isUsual)
    }

    private mutating func head(_ start: String, isUsual: Bool) -> [UInt8] {
        var text = start
        for _ in 0..<below(8) {
            let name = one(of: isUsual ? HeadSource.usualNames : HeadSource.names)
            text += below(3) == 0 ? name.lowercased() : below(3) == 0 ? name.uppercased() : name
            text += one(of: [": ", ": ", ":", ": \t"]) + one(of: HeadSource.values) + "\r\n"
        }
        text += "\r\n"
        if below(3) == 0 { text += "body: a\r\n\r\n" }
        var bytes = Array(text.utf8)
        if below(2) == 0 { damage(&bytes) }
        return bytes
    }

    private mutating func damage(_ bytes: inout [UInt8]) {
        for _ in 0...below(3) where !bytes.isEmpty {
            let place = below(bytes.count)
            switch below(5) {
            case 0: bytes[place] = one(of: HeadSource.marks)
            case 1: bytes.insert(one(of: HeadSource.marks), at: place)
            case 2: bytes.remove(at: place)
            case 3: bytes[place] ^= 1 << UInt8(below(8))
            default: if below(4) == 0 { bytes.removeSubrange(place...) }
            }
        }
    }
}
