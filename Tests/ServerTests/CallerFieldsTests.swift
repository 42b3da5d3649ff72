// Proves that the gateway names the caller to the backend in its own fields, and never passes on such a field
// of the client.
import CountersignHTTP
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct CallerFieldsTests {
    private func tells(_ name: String) -> Bool { ForbiddenCallerFields.tells(Array(name.utf8).span) }

    @Test(
        "what only a proxy may say is removed",
        arguments: [
            "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded", "x-forwarded-user",
            "x-forwarded-prefix", "x-forwarded-client-cert", "forwarded", "forwarded-for", "x-real-ip",
            "x-client-ip", "true-client-ip", "cf-connecting-ip", "x-original-url", "x-original-uri",
            "x-original-host", "x-rewrite-url", "x-http-method-override", "x-http-method",
            "x-method-override", "x-host", "front-end-https", "x-proxyuser-ip", "x-cluster-client-ip",
            "x-remote-user", "client-cert", "proxy", "ssl-client-verify", "x-ssl-client-s-dn",
            "x-arr-clientcert", "x-middleware-subrequest", "x-ms-client-principal",
            "x-ms-client-principal-idp", "x-goog-authenticated-user-email", "x-goog-iap-jwt-assertion",
            "x-amzn-oidc-data", "x-auth-request-email", "x-webauth-user", "cf-access-jwt-assertion",
            "x-sendfile-type", "x-accel-mapping", "do-connecting-ip", "x-nf-client-connection-ip",
            "x-vercel-forwarded-for", "https", "x-client-cert-dn", "x-consumer-id",
            "x-appengine-user-ip", "cf-access-" + String(repeating: "a", count: 60),
            "x-amzn-oidc-identity", "x-ms-client-principal-id", "x-consumer-username", "x-appengine-cron",
            "remote-user",
            // As a backend that writes `_` for what is no letter or digit reads them.
            "x_forwarded_for", "x.real.ip", "x-http_method~override", "x_original_url",
            "x-forwarded-" + String(repeating: "a", count: 60),
        ])
    func removed(_ name: String) {
        #expect(tells(name))
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.fields = [Draft.Field(name: name, value: "1")]
        let request = draft.request()
        let index = request.fields.count - 1
        #expect(ForbiddenCallerFields().isRemoved(request.fields[index], of: request))
        #expect(!ForbiddenCallerFields(keeping: [name]).isRemoved(request.fields[index], of: request))
    }

    @Test(
        "other fields are not",
        arguments: [
            "host", "accept", "user-agent", "cookie", "via", "x-forward", "x-request-id", "x-user",
            "x-original", "x-real", "xforwardedfor", "x-http", "prox", "proxys", "from", "referer", "te", "x",
            "c", "", "x-auth-version", "x-amz-date", "x-amzn-trace-id", "x-auth-token", "x-goog-api-key",
            "x-consumer", "x-client-certificate", "x-accelerated", "x-", "x-ms-date", "cf-ray", "http",
            "host-id", "d", "content-type", "countersign-release",
        ])
    func kept(_ name: String) { #expect(!tells(name)) }

    @Test(
        "the lines of our own",
        arguments: [
            ("192.0.2.1", .tls, "api.example.com", "for=192.0.2.1;proto=https;host=\"api.example.com\""),
            ("192.0.2.1", .plain, "127.0.0.1:80", "for=192.0.2.1;proto=http;host=\"127.0.0.1:80\""),
            ("2001:db8::1", .tls, "[::1]:8443", "for=\"[2001:db8::1]\";proto=https;host=\"[::1]:8443\""),
            ("::ffff:192.0.2.1", .tls, "a\"b", "for=192.0.2.1;proto=https"),
            ("nobody", .tls, "a,b", "for=unknown;proto=https"),
        ] as [(String, Request.Transport, String, String)])
    func lines(_ row: (client: String, transport: Request.Transport, host: String, forwarded: String)) {
        let client = NetworkAddress(text: row.client)
        let lines = ClientAddressFields(
            client: client, transport: row.transport, host: Array(row.host.utf8).span)
        let address = client?.text ?? "unknown"
        var expected = [
            "Countersign-Client: \(address)", "X-Forwarded-For: \(address)",
            "X-Forwarded-Proto: \(row.transport == .tls ? "https" : "http")",
        ]
        if row.forwarded.contains("host") { expected.append("X-Forwarded-Host: \(row.host)") }
        expected.append("Forwarded: \(row.forwarded)")
        #expect(String(decoding: lines.bytes, as: UTF8.self) == expected.map { "\($0)\r\n" }.joined())
    }

    @Test(
        "which names the setting takes",
        arguments: [
            ("X-HTTP-Method-Override", ["x-http-method-override"]),
            ("x-real-ip,true-client-ip", ["x-real-ip", "true-client-ip"]), ("X-Forwarded-For", nil),
            ("forwarded", nil), ("x-request-id", nil), ("", nil), ("x-real-ip,", nil),
        ] as [(String, [String]?)])
    func setting(_ row: (text: String, names: [String]?)) throws {
        let setting = try #require(Setting.all.first { $0.name == "forward-caller-fields" })
        var configuration = Configuration()
        #expect((setting.set(&configuration, row.text) != nil) == (row.names != nil))
        #expect(configuration.forwardedCallerFields == Set(row.names ?? []))
    }
}
