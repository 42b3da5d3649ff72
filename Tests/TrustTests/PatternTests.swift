import CountersignTestServer
import Testing

@testable import CountersignTrust

/// Which hosts a pattern means, and which a certificate's name does: tables in `Vectors/trust`.
struct PatternTests {
    private struct Patterns: Decodable {
        struct Case: Decodable {
            var pattern: String
            var host: String
            var matches: Bool
        }
        var cases: [Case]
        var notPatterns: [String]
        var notHosts: [String]
    }

    @Test func patterns() throws {
        let file = try Vectors.load("trust/patterns.json", as: Patterns.self)
        #expect(file.cases.count > 20 && file.notPatterns.count > 20 && file.notHosts.count > 10)
        for item in file.cases {
            let pattern = try Trust.HostPattern(item.pattern)
            let host = try Trust.Host(item.host)
            #expect(pattern.matches(host) == item.matches, "\(item)")
            // What is written is read again as the same.
            #expect(
                try Trust.HostPattern(pattern.description) == pattern && Trust.Host(host.description) == host)
        }
        for text in file.notPatterns {
            #expect(throws: TrustError.self, "\(text)") { try Trust.HostPattern(text) }
        }
        for text in file.notHosts {
            #expect(throws: TrustError.self, "\(text)") { try Trust.Host(text) }
        }
    }

    private struct Names: Decodable {
        struct Case: Decodable {
            var name: String
            var host: String
            var matches: Bool
        }
        var cases: [Case]
    }

    @Test func namesOnCertificates() throws {
        let cases = try Vectors.load("trust/names.json", as: Names.self).cases
        #expect(cases.count > 15)
        for item in cases {
            let isAddress = item.name.hasPrefix("address:")
            // A name that looks like an address is written as a name all the same, which no authority should
            // do.
            var request = CertificateRequest("Server", at: 2_000_000_000)
            request.alternativeNames = [isAddress ? "IP:" + item.name.dropFirst(8) : "DNS:" + item.name]
            let certificate = try IssuedCertificate.selfSigned(request).certificate
            #expect(certificate.isFor(try Trust.Host(item.host)) == item.matches, "\(item)")
        }
    }

    @Test func theRuleThatSaysMostCounts() throws {
        let rules = try [
            "**.example.com", "*.example.com", "api.example.com", "**.a.example.com", "api.example.com",
        ]
        .map {
            try Trust.Rule.host($0, .system)
        }
        for (host, expected) in [
            ("api.example.com", ["api.example.com", "api.example.com"]),
            ("www.example.com", ["*.example.com"]),
            // Two stars may stand for nothing, and three labels say more than two.
            ("a.example.com", ["**.a.example.com"]), ("b.a.example.com", ["**.a.example.com"]),
            ("b.c.example.com", ["**.example.com"]), ("example.com", ["**.example.com"]), ("example.org", []),
        ] {
            for order in [rules, rules.reversed()] {
                let found = try Trust(order, others: .refused).rules(for: Trust.Host(host))
                #expect(found.map(\.pattern.description) == expected, "\(host)")
            }
        }
    }
}
