import CountersignSchemes
import CountersignSeal
import CountersignWire

extension CauseRow {
    /// form-md5's own.
    static let forms: [CauseRow] =
        ([
            row("values-encoded") {
                $0.text = {
                    $0.replacing("Jo Ann", with: "Jo%20Ann").replacing("Köln", with: "K%C3%B6ln").replacing(
                        ":", with: "%3A")
                }
            },
            row("values-encoded") {
                $0.text = {
                    $0.replacing("Jo Ann", with: "Jo+Ann").replacing("Köln", with: "K%C3%B6ln").replacing(
                        ":", with: "%3A")
                }
            },
            row("plus-for-space") {
                $0.sent.body { $0.replacing("%20", with: "+") };
                $0.seen.body { $0.replacing("%20", with: "%2B") }
            },
            row("empty-left-out") { $0.text = { $0.replacing("empty=&", with: "") } },
            row("parameter-order") {
                $0.text = { text in
                    text.split(separator: "&").filter { !$0.hasPrefix("private_key") }.joined(separator: "&")
                        + "&private_key=<secret>"
                }
            },
            row("parameter-name-case") {
                $0.sent.body { $0.replacing("name", with: "Name") }; $0.seen = $0.sent;
                $0.text = {
                    $0.replacing("Name=Jo Ann&", with: "").replacing("empty=&", with: "empty=&name=Jo Ann&")
                }
            },
            row("key-place") {
                $0.text = { text in
                    text.split(separator: "&").filter { !$0.hasPrefix("private_key") }.joined(separator: "&")
                        + "<secret>"
                }
            },
            row("old-string-to-sign") {
                $0.text = { text in
                    text.split(separator: "&").filter { !$0.hasPrefix("private_key") }.joined(separator: "&")
                        + "&key=<secret>"
                }
            },
            row("query-added") { $0.seen.body { $0.replacing("&zip=50667", with: "") } },
            row("hex-case") { $0.encoded = { Hex.encode($0.span).uppercased() } },
            row("base64-for-hex") {
                $0.encoded = { Base64.encode($0.span, as: .standard).replacing("+", with: "%2B") }
            },
            row("key-id-white-space") {
                $0.later = { $0.body { $0.replacing("app_id=r_test", with: "app_id=r_test%0A") } }
                $0.text = { $0.replacing("app_id=r_test", with: "app_id=r_test\n") }
            },
            row("timestamp-format") {
                $0.later = { $0.body { $0.replacing("-08%3A", with: "+08%3A") } }
                $0.text = { $0.replacing("-08:", with: " 08:") }
            },
            row("body-compressed") {
                $0.later = {
                    $0.body = stored($0.body); $0.setField("Content-Encoding", to: "gzip")
                }
            },
            row("clock-off") { $0.at += 310 },
            row("local-time") { $0.at -= 28_800 },
        ] as [Row]).map { CauseRow($0.0, .formMD5, $0.1) }
}
