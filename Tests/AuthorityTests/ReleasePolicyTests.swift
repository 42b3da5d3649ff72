import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@Suite struct ReleasePolicyTests {
    private let folder = TemporaryFolder()
    private let deployment: Deployment
    private let own: KeyID
    private let other: KeyID

    init() throws {
        let app = try #require(AppName("demo"))
        deployment = try AuthorityTests.deployment(folder.data)
        own = try #require(KeyID("r_1"))
        other = try #require(KeyID("r_2"))
        _ = try deployment.addApp(app, settings: ["window=40s", "debug=on", "forward=x-a"], at: 5)
        _ = try deployment.addRelease(draft(app, id: "r_1"), at: 6)
        _ = try deployment.addRelease(draft(app, id: "r_2", version: "2.0"), at: 6)
    }

    @Test func aReleasesOwnSettingStandsInPlaceOfTheApps() throws {
        let keys = try ReleaseKeyDirectory(deployment)
        try deployment.setPolicy(["window=message-signatures=10s", "cover=x-b"], ofRelease: own)
        let policy = try #require(try keys.release(for: own)).policy
        #expect(policy.window(for: .messageSignatures) == 10)
        #expect(policy.window(for: .formMD5) == 300, "nothing of the app's windows is left")
        #expect(policy.requiredFields == ["x-b"])
        #expect(policy.detail == .exact && policy.forwardedFields == ["x-a"])
        #expect(try keys.release(for: other)?.policy.window(for: .messageSignatures) == 40)

        try deployment.setPolicy(["window=", "cover="], ofRelease: own)
        #expect(try keys.release(for: own)?.policy == keys.release(for: other)?.policy)
        try deployment.setPolicy(["debug=off"], of: #require(AppName("demo")))
        #expect(try keys.release(for: own)?.policy.detail == .coarse)
    }

    @Test func theWidestWindowOfAnyReleaseIsRemembered() throws {
        let keys = try ReleaseKeyDirectory(deployment)
        try deployment.setPolicy(["window=2h"], ofRelease: own)
        _ = try keys.release(for: own)
        #expect(keys.longestWindow == 7200)
    }

    @Test(
        "what only the app can decide, and what is nothing at all",
        arguments: [
            "slots=single", "registration=open", "legacy-login=on", "legacy-key=k", "nonsense=1",
            "window=soon",
        ])
    func refused(_ assignment: String) throws {
        let fault = #expect(throws: OperationalError.self) {
            try deployment.setPolicy(["debug=off", assignment], ofRelease: own)
        }
        #expect(fault?.kind == .usage)
        #expect(try deployment.release(own).settings.isEmpty)
    }

    @Test func aReleaseThatIsNotThere() throws {
        #expect(throws: OperationalError.self) {
            try deployment.setPolicy(["debug=on"], ofRelease: #require(KeyID("absent")))
        }
    }
}
