import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// Each mistake as a signer makes it, and the cause that must be named.
struct CauseRow: Sendable, CustomTestStringConvertible {
    let cause: String
    let scheme: SchemeName
    let make: @Sendable (inout Mistaken) -> Void

    var testDescription: String { "\(cause) in \(scheme.rawValue)" }

    init(_ cause: String, _ scheme: SchemeName, _ make: @escaping @Sendable (inout Mistaken) -> Void) {
        self.cause = cause
        self.scheme = scheme
        self.make = make
    }

    static let all = everywhere + messages + forms + CauseRow.otherSchemes

    /// Mistakes that every scheme has.
    private static let everywhere = SchemeName.signing.flatMap { scheme in
        [
            CauseRow("secret-white-space", scheme) { $0.secret.append(0x0A) },
            CauseRow("secret-white-space", scheme) { $0.secret.insert(0x20, at: 0) },
            CauseRow("secret-encoding", scheme) { $0.secret = Array(Hex.encode($0.secret.span).utf8) },
            CauseRow("secret-encoding", scheme) {
                $0.secret = Array(Base64.encode($0.secret.span, as: .url).utf8)
            },
            CauseRow("secret-encoding", scheme) {
                $0.secret = Array(Base64.encode($0.secret.span, as: .standard).utf8)
            },
            CauseRow("secret-quoted", scheme) { $0.secret = [0x22] + $0.secret + [0x22] },
            CauseRow("secret-case", scheme) { $0.secret = Array("THE SECRET OF RELEASE 1".utf8) },
            CauseRow("secret-prefixed", scheme) { $0.secret = Array("text:".utf8) + $0.secret },
            CauseRow("secret-of-another-release", scheme) {
                $0.secret = Array("the secret of release 2".utf8)
            },
            CauseRow("base64-of-hex", scheme) {
                $0.encoded = { Base64.encode(Array(Hex.encode($0.span).utf8).span, as: .standard) }
            },
            CauseRow("wrong-algorithm", scheme) {
                $0.mac = { DiagnosticHash.sha512.hmac(key: $1.span, message: $0.span) }
            },
            CauseRow("wrong-algorithm", scheme) {
                $0.mac = { DiagnosticHash.sha1.digest(($1 + $0).span) }
                $0.text = { $0.replacing("<secret>", with: "") }
            },
            CauseRow("wrong-algorithm", scheme) {
                $0.mac = { DiagnosticHash.md5.hmac(key: $1.span, message: $0.span) }
            },
        ]
    }

    typealias Row = (String, @Sendable (inout Mistaken) -> Void)

    static func row(_ cause: String, _ make: @escaping @Sendable (inout Mistaken) -> Void) -> Row {
        (cause, make)
    }

    private static let messages: [CauseRow] =
        ([
            row("path-without-slash") { $0.seen.target { $0.replacing("/?", with: "?") } },
            row("path-with-slash") { $0.sent.target { $0.replacing("/?", with: "?") } },
            row("path-decoded") { $0.seen.target { $0.replacing("a%20b/c%2Fd", with: "a b/c/d") } },
            row("path-re-encoded") {
                $0.seen.target { $0.replacing("a%20b/c%2Fd", with: "a%2520b/c%252Fd") }
            },
            row("path-normalised") { $0.sent.target { "/./x/..//" + $0.dropFirst() } },
            row("path-prefix") { $0.sent.target { "/api\($0)" } },
            row("plus-for-space") { $0.seen.target { $0.replacing("+", with: "%20") } },
            row("plus-for-space") { $0.seen.target { $0.replacing("%20e", with: "+e") } },
            row("query-decoded") {
                $0.seen.target { $0.replacing("c+d%20e&b=1&a=%2f", with: "c d e&b=1&a=/") }
            },
            row("escape-case") { $0.seen.target { $0.replacing("%2f", with: "%2F") } },
            row("query-re-encoded") {
                $0.sent.target { $0.replacing("%2f", with: "/:") }
                $0.seen.target { $0.replacing("%2f", with: "%2F%3A").replacing("+", with: "%20") }
            },
            row("query-order") {
                $0.seen.target { $0.replacing("q=c+d%20e&b=1&a=%2f&flag", with: "a=%2f&b=1&flag&q=c+d%20e") }
            },
            row("query-order") {
                $0.seen.target { $0.replacing("q=c+d%20e&b=1&a=%2f&flag", with: "b=1&q=c+d%20e&flag&a=%2f") }
            },
            row("query-equals") { $0.seen.target { $0 + "=" } },
            row("query-left-out") { $0.seen.target { String($0.prefix { $0 != "?" }) } },
            row("query-added") { $0.seen.target { $0.replacing("b=1&", with: "") } },
            row("query-mark") { $0.text = { $0.replacing("\"@query\": ?", with: "\"@query\": ") } },
            row("method-case") { $0.seen.method = "post" },
            row("other-method") { $0.seen.method = "PUT" },
            row("host-without-port") { $0.seen.authority = "api.example.com" },
            row("host-with-port") { $0.sent.authority = "api.example.com" },
            row("host-with-port") {
                $0.sent.authority = "a.test"; $0.seen.authority = "a.test";
                $0.text = { $0.replacing("a.test", with: "a.test:443") }
            },
            row("host-case") {
                $0.sent.authority = "API.example.com"; $0.seen.authority = "API.example.com";
                $0.text = { $0.replacing("api.", with: "API.") }
            },
            row("other-host") {
                $0.sent.fields.append(.init(name: "X-Forwarded-Host", value: "shop.example.org"));
                $0.seen.fields = $0.sent.fields; $0.seen.authority = "shop.example.org"
            },
            row("other-host") { $0.seen.authority = "www.api.example.com:8443" },
            row("header-added") {
                $0.seen.setField("X-Forwarded-For", to: "10.0.0.1");
                $0.sent.setField("X-Forwarded-For", to: "10.0.0.1, 192.0.2.7")
            },
            row("header-added") {
                $0.seen.setField("Via", to: "1.1 a");
                $0.sent.fields += [
                    .init(name: "Via", value: "1.1 a"), .init(name: "Via", value: "1.1 proxy"),
                ]
            },
            row("header-folded") {
                $0.seen.setField("X-List", to: "a,b"); $0.sent.setField("X-List", to: "a, b")
            },
            row("header-folded") {
                $0.seen.setField("X-Words", to: "two  words"); $0.sent.setField("X-Words", to: "two words")
            },
            row("content-type-changed") {
                $0.sent.setField("Content-Type", to: "application/json; charset=utf-8")
            },
            row("content-type-changed") {
                $0.seen.setField("Content-Type", to: "application/json;charset=UTF-8")
            },
            row("header-value-case") {
                $0.sent.setField("X-Device", to: "iPhone"); $0.seen.setField("X-Device", to: "iphone")
            },
            row("header-name-case") {
                $0.text = {
                    $0.replacing("\"content-type\":", with: "\"Content-Type\":").replacing(
                        "\"countersign-release\":", with: "\"Countersign-Release\":"
                    ).replacing("\"content-digest\":", with: "\"Content-Digest\":")
                }
            },
            row("header-name-case") {
                $0.later = {
                    $0.edit("signature-input") { $0.replacing("content-type", with: "Content-Type") }
                }
                $0.text = { $0.replacing("content-type\" ", with: "Content-Type\" ") }
            },
            row("line-ends") { $0.text = { $0.replacing("\n", with: "\r\n") } },
            row("line-ends") { $0.text = { $0 + "\n" } },
            row("line-ends") { $0.text = { $0.replacing("\n", with: "\\n") } },
            row("signature-params") {
                $0.text = { text in text.split(separator: "\n").dropLast().joined(separator: "\n") }
            },
            row("signature-params") { $0.text = { $0.replacing("params\": ", with: "params\": app=") } },
            row("component-order") {
                $0.text = { text in
                    let lines = text.split(separator: "\n");
                    return
                        (lines.dropLast().sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } + [
                            lines[lines.count - 1]
                        ]).joined(separator: "\n")
                }
            },
            row("old-string-to-sign") {
                $0.text = { text in
                    text.split(separator: "\n").dropLast().map { $0.replacing("\"", with: "") }.joined(
                        separator: "\n")
                }
            },
            row("old-string-to-sign") { mistaken in
                mistaken.text = { text in
                    let fields = text.split(separator: "\n").dropLast().filter { !$0.hasPrefix("\"@") }.map {
                        $0.replacing("\"", with: "")
                    }
                    return
                        ([
                            "(request-target): post /a%20b/c%2Fd/?q=c+d%20e&b=1&a=%2f&flag",
                            "host: api.example.com:8443",
                        ] + fields).joined(separator: "\n")
                }
            },
            row("body-reserialised") {
                $0.sent.body { $0.replacing(":", with: ": ").replacing(",", with: ", ") }
            },
            row("body-reserialised") {
                $0.seen.body { $0.replacing("x/y", with: "x\\/y").replacing("ë", with: "\\u00eb") }
            },
            row("body-reserialised") {
                $0.seen.body { _ in "{\"a\":{\"name\":\"Zoë\"},\"b\":[1,2.50,\"x/y\"]}" }
            },
            row("body-reserialised") {
                $0.seen.body { _ in
                    """
                    {\n  \"b\": [\n    1,\n    2.50,\n    \"x/y\"\n  ],\n  \"a\": {\n    \"name\": \"Zoë\"\n\
                      }\n}
                    """
                }
            },
            row("form-reordered") {
                $0.seen.setField("Content-Type", to: "application/x-www-form-urlencoded");
                $0.sent.fields = $0.seen.fields;
                $0.seen.body { _ in "b=2&a=1&c=x+y" }; $0.sent.body { _ in "a=1&b=2&c=x+y" }
            },
            row("body-line-ends") { $0.sent.body.append(0x0A) },
            row("body-line-ends") { $0.seen.body { $0 + "\r\n" } },
            row("body-character-set") {
                $0.seen.body { $0.replacing("ë", with: "?") }
                $0.seen.body = Array(
                    $0.seen.body.split(separator: 0x3F, omittingEmptySubsequences: false).joined(separator: [
                        0xEB
                    ]))
            },
            row("body-compressed") {
                $0.later = {
                    $0.body = gzip; $0.setField("Content-Encoding", to: "gzip")
                }; $0.seen.body = Array("{\"a\":1}".utf8)
            },
            row("body-compressed") {
                $0.later = {
                    $0.body = deflate; $0.setField("Content-Encoding", to: "deflate")
                }; $0.seen.body = Array("{\"a\":1}".utf8)
            },
            row("digest-of-nothing") {
                $0.seen.setField(
                    "Content-Digest", to: "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:");
                $0.seen.body = [];
                $0.later = {
                    $0.edit("content-digest") { _ in "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
                    }
                }
            },
            row("empty-digest-missing") {
                $0.sent.body = []; $0.seen.body = [];
                $0.seen.setField(
                    "Content-Digest", to: "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:");
                $0.later = { $0.fields.removeAll { $0.name == "Content-Digest" } }
            },
            row("header-dropped") {
                $0.seen.setField("X-Marker", to: ""); $0.sent.setField("X-Marker", to: "");
                $0.later = { $0.fields.removeAll { $0.name == "X-Marker" } }
            },
            row("digest-encoding") { mistaken in
                let body = mistaken.sent.body
                let hex = Hex.encode(SHA256.digest(body.span).span)
                let right = Base64.encode(SHA256.digest(body.span).span, as: .standard)
                mistaken.later = { $0.edit("content-digest") { _ in "sha-256=:\(hex):" } }
                mistaken.text = { $0.replacing(right, with: hex) }
            },
            row("hex-for-base64") { $0.encoded = { Hex.encode($0.span) } },
            row("base64-variant") { $0.encoded = { Base64.encode($0.span, as: .url) } },
            row("key-id-white-space") {
                $0.later = {
                    $0.edit("signature-input") { $0.replacing("keyid=\"r_test\"", with: "keyid=\"r_test \"") }
                }; $0.text = { $0.replacing("keyid=\"r_test\"", with: "keyid=\"r_test \"") }
            },
            row("key-id-white-space") {
                $0.later = {
                    $0.edit("signature-input") { $0.replacing("keyid=\"r_test\"", with: "keyid=\"r_test \"") }
                }; $0.text = { $0.replacing("r_test", with: "r_test ") }
            },
            row("alg-parameter") {
                $0.later = { $0.edit("signature-input") { $0.replacing("hmac-sha256", with: "hs2019") } }
                $0.text = { $0.replacing("hmac-sha256", with: "hs2019") }
            },
            row("alg-parameter+wrong-algorithm") {
                $0.later = { $0.edit("signature-input") { $0.replacing("hmac-sha256", with: "hmac-sha512") } }
                $0.text = { $0.replacing("hmac-sha256", with: "hmac-sha512") }
                $0.mac = { DiagnosticHash.sha512.hmac(key: $1.span, message: $0.span) }
            },
            row("created-not-integer") {
                $0.later = {
                    $0.edit("signature-input") { $0.replacing("1800000000", with: "\"1800000000\"") }
                }
                $0.text = { $0.replacing("1800000000", with: "\"1800000000\"") }
            },
            row("signature-input-spacing") {
                $0.later = { $0.edit("signature-input") { $0.replacing(";", with: "; ") } }
                $0.text = { $0.replacing(";", with: "; ") }
            },
            row("hmac-arguments") { $0.mac = { DiagnosticHash.sha256.hmac(key: $0.span, message: $1.span) } },
            row("digest-first") {
                $0.mac = {
                    DiagnosticHash.sha256.hmac(
                        key: $1.span,
                        message: Array(Hex.encode(DiagnosticHash.sha256.digest($0.span).span).utf8).span)
                }
            },
            row("milliseconds") { $0.at *= 1000 },
            row("clock-off") { $0.at -= 90 },
            row("local-time") { $0.at += 7200 },
            row("path-decoded+host-without-port") {
                $0.seen.target { $0.replacing("a%20b/c%2Fd", with: "a b/c/d") }
                $0.seen.authority = "api.example.com"
            },
            row("query-order+hex-for-base64") {
                $0.seen.target { $0.replacing("q=c+d%20e&b=1&a=%2f&flag", with: "a=%2f&b=1&flag&q=c+d%20e") }
                $0.encoded = { Hex.encode($0.span) }
            },
        ] as [Row]).map { CauseRow($0.0, .messageSignatures, $0.1) }

    /// `{"a":1}`, by Python's gzip.compress(…, mtime=0) and zlib.compress.
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xAB, 0x56, 0x4A, 0x54, 0xB2, 0x32, 0xAC,
        0x05, 0x00, 0xAF, 0xAC, 0x1B, 0x56, 0x07, 0x00, 0x00, 0x00,
    ]
    private static let deflate: [UInt8] = [
        0x78, 0x9C, 0xAB, 0x56, 0x4A, 0x54, 0xB2, 0x32, 0xAC, 0x05, 0x00, 0x08, 0x2A, 0x02, 0x09,
    ]
}
