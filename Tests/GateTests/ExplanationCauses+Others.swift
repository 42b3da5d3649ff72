import CountersignSchemes
import CountersignSeal
import CountersignWire

extension CauseRow {
    static let otherSchemes = hex + sigV4 + auth

    /// Schemes that write their signatures in hexadecimal digits, and sign a path.
    private static let hex = [SchemeName.sigV4, .authV1, .authV2, .authV4].flatMap { scheme in
        [
            CauseRow("hex-case", scheme) { $0.encoded = { Hex.encode($0.span).uppercased() } },
            CauseRow("method-case", scheme) { $0.seen.method = "post" },
            CauseRow("other-method", scheme) { $0.seen.method = "PATCH" },
            CauseRow("path-without-slash", scheme) { $0.seen.target { $0.replacing("/?", with: "?") } },
            CauseRow("path-with-slash", scheme) { $0.sent.target { $0.replacing("/?", with: "?") } },
            CauseRow("path-prefix", scheme) { $0.sent.target { "/api\($0)" } },
            // With other line ends sigv4's text names no scope, and so no key.
            CauseRow("line-ends", scheme) {
                $0.text = {
                    $0.replacing("\n", with: scheme == .sigV4 ? "\n" : "\r\n")
                        + (scheme == .sigV4 ? "\n" : "")
                }
            },
            CauseRow("line-ends", scheme) { $0.text = { $0 + "\n" } },
            CauseRow("hmac-arguments", scheme) {
                $0.mac = { DiagnosticHash.sha256.hmac(key: $0.span, message: $1.span) }
            },
            CauseRow("milliseconds", scheme) { $0.at *= scheme == .sigV4 ? 1 : 1000 },
            CauseRow("clock-off", scheme) { $0.at -= 50_000 },
            CauseRow("local-time", scheme) { $0.at += 13 * 3600 },
        ].filter { scheme != .sigV4 || $0.cause != "milliseconds" }
    }

    private static let sigV4: [CauseRow] = [
        CauseRow("path-encoded-once", .sigV4) {
            $0.canonical = { $0.replacing("/a%2520b/c%252Fd/", with: "/a%20b/c%2Fd/") }
        },
        CauseRow("plus-for-space", .sigV4) {
            $0.sent.target { $0.replacing("c+d%20e", with: "c+d+e") };
            $0.seen.target { $0.replacing("c+d%20e", with: "c%20d%20e") }
        },
        CauseRow("header-name-case", .sigV4) {
            $0.canonical = {
                $0.replacing("\ncontent-type:", with: "\nContent-Type:").replacing("\nhost:", with: "\nHost:")
                    .replacing("\nx-amz-date:", with: "\nX-Amz-Date:").replacing(
                        "\nx-amz-content-sha256:", with: "\nX-Amz-Content-Sha256:")
            }
        },
        CauseRow("payload-hash", .sigV4) {
            $0.canonical = { text in
                text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().joined(
                    separator: "\n")
                    + "\nUNSIGNED-PAYLOAD"
            }
        },
        CauseRow("empty-digest-missing", .sigV4) {
            $0.sent.body = []; $0.seen.body = [];
            $0.canonical = { text in
                text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().joined(
                    separator: "\n") + "\n"
            }
        },
        CauseRow("canonical-lines", .sigV4) { $0.canonical = { $0.replacing("\n\n", with: "\n") } },
        CauseRow("canonical-not-hashed", .sigV4) { mistaken in
            var canonical = ""
            mistaken.canonical = {
                canonical = $0; return $0
            }
            mistaken.text = {
                $0.split(separator: "\n").dropLast().joined(separator: "\n") + "\n" + canonical
            }
        },
        CauseRow("old-string-to-sign", .sigV4) {
            $0.mac = { _, secret in
                let text = "POST\napi.example.com:8443\n/a%20b/c%2Fd/\na=%2f&b=1&flag&q=c+d%20e"
                return DiagnosticHash.sha256.hmac(key: secret.span, message: Array(text.utf8).span)
            }
        },
        CauseRow("key-derivation", .sigV4) {
            $0.mac = { DiagnosticHash.sha256.hmac(key: $1.span, message: $0.span) }
        },
        CauseRow("host-without-port", .sigV4) { $0.seen.authority = "api.example.com" },
        CauseRow("header-added", .sigV4) {
            $0.seen.setField("X-Forwarded-For", to: "10.0.0.1");
            $0.sent.setField("X-Forwarded-For", to: "10.0.0.1, 192.0.2.7")
        },
        CauseRow("content-type-changed", .sigV4) {
            $0.sent.setField("Content-Type", to: "application/json; charset=utf-8")
        },
        CauseRow("body-reserialised", .sigV4) {
            $0.sent.body { $0.replacing(":", with: ": ").replacing(",", with: ", ") }
        },
        CauseRow("body-line-ends", .sigV4) { $0.sent.body.append(0x0A) },
        CauseRow("base64-for-hex", .sigV4) { $0.encoded = { Base64.encode($0.span, as: .standard) } },
        CauseRow("key-id-white-space", .sigV4) {
            $0.later = {
                $0.edit("authorization") { $0.replacing("Credential=r_test/", with: "Credential=r_test /") }
            }
        },
    ]

    private static let auth: [CauseRow] = [
        CauseRow("old-string-to-sign", .authV1) {
            $0.text = { _ in "POST\n/a b/c/\nCity=Köln&empty=&name=Jo Ann&zip=50667" }; $0.sent.body = [];
            $0.seen.body = []
        },
        CauseRow("old-string-to-sign", .authV2) {
            $0.text = { _ in
                """
                POST\n/a%20b/c/\nauth_client_id=r_test&auth_timestamp=1800000000&auth_version=2&city=Köln&\
                empty=&name=Jo Ann&zip=50667
                """
            }
        },
        CauseRow("old-string-to-sign", .authV4) {
            $0.text = {
                $0.replacing("https://api.example.com:8443", with: "").replacing(
                    "?q=c+d%20e&b=1&a=%2f&flag", with: "")
            }
        },
        CauseRow("other-url", .authV4) {
            $0.text = { $0.replacing("https://api.example.com:8443", with: "") }
        },
        CauseRow("values-not-encoded", .authV4) {
            $0.text = {
                $0.replacing("Jo%20Ann", with: "Jo Ann").replacing("K%C3%B6ln", with: "Köln").replacing(
                    "%5B1%2C%202%5D", with: "[1, 2]")
            }
        },
        CauseRow("other-transport", .authV4) { $0.seen.transport = .plain },
        CauseRow("host-without-port", .authV4) { $0.seen.authority = "api.example.com" },
        CauseRow("query-order", .authV4) {
            $0.seen.target { $0.replacing("q=c+d%20e&b=1&a=%2f&flag", with: "a=%2f&b=1&flag&q=c+d%20e") }
        },
        CauseRow("plus-for-space", .authV4) { $0.seen.target { $0.replacing("+", with: "%20") } },
        CauseRow("body-compressed", .authV4) {
            $0.later = {
                $0.body = stored($0.body); $0.setField("Content-Encoding", to: "gzip")
            }
        },
        CauseRow("body-reserialised", .authV4) {
            $0.sent.body { $0.replacing("[1, 2]", with: "[1,2]") };
            $0.seen.body {
                $0.replacing("[1, 2]", with: "[1, 2]").replacing("\":", with: "\": ").replacing(
                    ",\"", with: ", \"")
            }
        },
        CauseRow("values-encoded", .authV1) {
            $0.text = { $0.replacing("Jo Ann", with: "Jo%20Ann").replacing("Köln", with: "K%C3%B6ln") }
        },
        CauseRow("values-encoded", .authV2) {
            $0.text = { $0.replacing("Jo Ann", with: "Jo+Ann").replacing("Köln", with: "K%C3%B6ln") }
        },
        CauseRow("parameter-name-case", .authV1) { $0.text = { $0.replacing("city=", with: "City=") } },
        CauseRow("parameter-name-case", .authV2) {
            $0.text = { text in
                var lines = text.split(separator: "\n").map(String.init)
                lines[2] = lines[2].lowercased().replacing("jo ann", with: "Jo Ann").replacing(
                    "köln", with: "Köln")
                return lines.joined(separator: "\n")
            }
        },
        CauseRow("empty-left-out", .authV2) { $0.text = { $0.replacing("empty=&", with: "") } },
        CauseRow("path-decoded", .authV1) { $0.text = { $0.replacing("/a%20b/", with: "/a b/") } },
        CauseRow("digest-missing", .authV1) {
            $0.later = { draft in draft.target { $0.replacing(/&body_md5=[0-9a-f]{32}/, with: "") } }
        },
        CauseRow("body-line-ends", .authV1) { $0.later = { $0.body.append(0x0A) } },
        CauseRow("body-reserialised", .authV1) {
            $0.later = { $0.body { $0.replacing(",", with: ", ").replacing(":", with: ": ") } }
        },
        CauseRow("key-id-white-space", .authV1) {
            $0.later = { $0.target { $0.replacing("auth_key=r_test", with: "auth_key=r_test%20") } };
            $0.text = { $0.replacing("auth_key=r_test", with: "auth_key=r_test ") }
        },
        CauseRow("key-id-white-space", .authV2) {
            $0.later = {
                $0.target { $0.replacing("auth_client_id=r_test", with: "auth_client_id=r_test%0A") }
            }
        },
    ]

    /// The bytes as gzip in one stored block. Source: RFC 1951 §3.2.4, RFC 1952.
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        let (low, high) = (UInt8(bytes.count & 0xFF), UInt8(bytes.count >> 8))
        var crc: UInt32 = ~0
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF, 1, low, high, ~low, ~high] + bytes + word(~crc)
            + word(UInt32(bytes.count))
    }
}
