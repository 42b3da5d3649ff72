import CountersignSeal
import CountersignWire

/// A request to sign, and what its signature base must say. Which further components are covered, and in
/// which order, is the port's choice.
struct KnownSignature {
    let method: String
    let target: String
    /// Lower-case names.
    var fields: [(String, String)] = []
    var body: [UInt8] = []

    static let samples: [KnownSignature] = [
        KnownSignature(method: "GET", target: "/hello"),
        KnownSignature(method: "GET", target: "/a%20b/%E4?x=1&y=%2F&x=2"),
        KnownSignature(method: "DELETE", target: "/items/7?"),
        KnownSignature(
            method: "POST", target: "/orders", fields: [("content-type", "application/json")],
            body: Array(#"{"amount":5}"#.utf8)),
        KnownSignature(
            method: "PUT", target: "/orders/1?draft",
            fields: [("content-type", "text/plain"), ("idempotency-key", "k-1")],
            body: [0, 255, 10, 13]),
    ]

    private static let authority = "api.example.com:8443"

    func check(_ port: Port) throws(CaseFailure) {
        let random = SystemRandom()
        let (secret, nonce) = (random.bytes(32), Base64.encode(random.bytes(12).span, .url))
        let members = fields.map { (name: $0.0, value: JSONValue.string($0.1)) }
        let answer = try port.done(
            "known-signature",
            with: [
                "method": .string(method), "target": .string(target),
                "authority": .string(KnownSignature.authority),
                "fields": .object(members), "body": .bytes(body), "key_id": "s_AAAAAAAAAAAAAAAAAAAAAA.3",
                "release": "r_known", "secret": .bytes(secret), "created": 1_763_719_200,
                "nonce": .string(nonce),
            ])
        let base = answer.text("base")
        try check(base, nonce: nonce)
        let message = Array(base.utf8)
        let sum = HMACSHA256(key: secret.span).authenticate(message.span)
        let bytes = sum.indices.map { sum[$0] }
        let expected = Base64.encode(bytes.span, .standard)
        guard answer.text("signature").contains(":\(expected):") else {
            throw CaseFailure(
                "\(what): the signature is :\(expected): for this base.", observed: answer.text("signature"))
        }
    }

    private var what: String { "\(method) \(target)" }

    private func check(_ base: String, nonce: String) throws(CaseFailure) {
        var lines = base.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let last = lines.popLast() ?? ""
        let names = lines.map { String($0.prefix { $0 != ":" }) }
        let values = self.values
        for (name, value) in values {
            if lines.contains("\(name): \(value)") { continue }
            let actual = lines.first { $0.hasPrefix("\(name):") } ?? "no line of that component"
            throw CaseFailure("\(what): the base has the line `\(name): \(value)`.", observed: actual)
        }
        let list = names.joined(separator: " ")
        guard last.hasPrefix("\"@signature-params\": (\(list))") else {
            throw CaseFailure(
                "\(what): the last line lists the components as they stand: (\(list)).", observed: last)
        }
        for part in ["created=1763719200", "nonce=\"\(nonce)\"", "keyid=\"s_AAAAAAAAAAAAAAAAAAAAAA.3\""] {
            if last.contains(";\(part)") { continue }
            throw CaseFailure("\(what): the last line has the parameter `\(part)`.", observed: last)
        }
    }

    /// By component, in quotes.
    private var values: [(String, String)] {
        let path = String(target.prefix { $0 != "?" })
        let query = target.dropFirst(path.count)
        var values = [
            ("\"@method\"", method), ("\"@authority\"", KnownSignature.authority), ("\"@path\"", path),
            ("\"@query\"", query.isEmpty ? "?" : String(query)), ("\"countersign-release\"", "r_known"),
        ]
        values += fields.map { ("\"\($0.0)\"", $0.1) }
        if !body.isEmpty {
            let digest = SHA256.digest(body.span)
            let bytes = digest.indices.map { digest[$0] }
            let text = Base64.encode(bytes.span, .standard)
            values.append(("\"content-digest\"", "sha-256=:\(text):"))
        }
        return values
    }
}
