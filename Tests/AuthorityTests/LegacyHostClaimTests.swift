import Testing

@testable import CountersignAuthority

/// Which unsigned requests an app owns by its `legacy-host`, beside another app's.
@Suite struct LegacyHostClaimTests {
    @Test(
        "own host, the other app's host, the host of neither, whether some requests are the app's",
        arguments: [
            (nil, "api.test", nil, false), ("api.test", nil, nil, true),
            ("api.test", "other.test", nil, true), ("api.test", "api.test", "api.test", false),
            ("api.test", "api.test:8443", "api.test:8443", true),
            ("api.test:8443", "api.test", "api.test:8443", false),
            ("api.test:8443", "api.test:8443", "api.test:8443", false),
            ("api.test:8443", "api.test:9443", nil, true), ("[::1]", "[::1]:8443", "[::1]:8443", true),
            ("[::1]:8443", "[::1]", "[::1]:8443", false),
        ] as [(String?, String?, String?, Bool)])
    func claim(_ own: String?, _ others: String?, _ conflict: String?, _ isEffective: Bool) throws {
        let (app, other) = (try #require(AppName("app")), try #require(AppName("other")))
        var hosts: [AppName: String] = [:]
        hosts[app] = own
        hosts[other] = others
        let claim = LegacyHostClaim(of: app, among: hosts)
        #expect(claim.conflicts == (conflict.map { [.init(other: other, host: $0)] } ?? []))
        #expect(claim.isEffective == isEffective)
        // What the gateway finds: the owner of requests to the app's own host.
        guard let own else { return }
        var table = LegacyHosts<String>()
        for (name, host) in hosts { table.add(name.description, at: host) }
        let owner: String? = if case .one(let found) = table.find(at: own.utf8.span) { found } else { nil }
        #expect((owner == "app") == isEffective)
    }
}
