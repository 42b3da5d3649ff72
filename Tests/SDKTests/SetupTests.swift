import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignTrust
import CountersignWire
import Testing

@testable import Countersign

/// A client says what is wrong with its release key: when it is made, at ``CountersignClient/checkSetup()``,
/// or at the first refusal, instead of handing out a status of 401 without a word.
@Suite struct SetupTests {
    private static let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

    private static func make(
        _ trust: Trust, _ change: (inout CountersignOptions) -> Void = { _ in }
    ) throws -> CountersignClient {
        var options = CountersignOptions()
        change(&options)
        return try CountersignClient(
            release: ReleaseKey(id: "r_1", secret: secret), baseURL: "https://api.example.com",
            vault: .folder(TestFolder().path), trust: trust, options: options)
    }

    private func message(of body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func aClientWithNothingToVerifyByIsNotMade() throws {
        let said = message { _ = try SetupTests.make(.system) }
        #expect(said.contains("authority key is missing") && said.contains("api.example.com"))
        let pinned: Trust = try [
            .host("**.example.com", pins: [Certificates.strange], backups: [SetupTests.other])
        ]
        #expect(throws: Never.self) { try SetupTests.make(pinned) }
        #expect(throws: Never.self) {
            try SetupTests.make(.system) { $0.missingAuthorityKey = .leavesRefusalsUnverified }
        }
        // A rule that only reports pins nothing.
        let reporting: Trust = try [
            .host(
                "**.example.com", pins: [Certificates.strange], backups: [SetupTests.other], mode: .reportOnly
            )
        ]
        #expect(message { _ = try SetupTests.make(reporting) }.contains("authority key is missing"))
    }

    /// A trust whose rules are for other hosts leaves this one to the machine's rule, unseen.
    @Test func pinsThatDoNotCoverTheServerAreRefused() throws {
        let elsewhere: Trust = try [
            .host("**.example.net", pins: [Certificates.strange], backups: [SetupTests.other])
        ]
        for trust in [elsewhere, Trust(elsewhere.rules, others: .refused)] {
            let said = message {
                _ = try SetupTests.make(trust) { $0.missingAuthorityKey = .leavesRefusalsUnverified }
            }
            #expect(said.contains("no rule covers api.example.com") && said.contains("**.example.net"))
        }
        let both = Trust(elsewhere.rules + [try .host("api.example.com", .system)], others: .refused)
        #expect(throws: Never.self) {
            try SetupTests.make(both) { $0.missingAuthorityKey = .leavesRefusalsUnverified }
        }
    }

    private static let other = "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    @Test func theSecretIsNoAuthorityKey() {
        let said = message {
            _ = try ReleaseKey(id: "r_1", secret: SetupTests.secret, authorityKey: SetupTests.secret)
        }
        #expect(said.contains("it is the release's secret"))
    }

    /// As `release add` prints it.
    private static func authorityKey() throws -> String {
        let bytes = Array(try PrivateKey(random: .ed25519).publicKey.der.suffix(32))
        return Base64.encode(bytes.span, as: .url)
    }

    @Test func theNextAuthorityKeyIsCheckedAsTheFirstIs() throws {
        let secret = SetupTests.secret
        let keys = [try SetupTests.authorityKey(), try SetupTests.authorityKey()]
        #expect(throws: Never.self) {
            try ReleaseKey(id: "r_1", secret: secret, authorityKey: keys[0], nextAuthorityKey: keys[1])
        }
        let wrong: [(key: String?, next: String, said: String)] = [
            (keys[0], keys[0], "it is the authority key"), (nil, keys[1], "expected the authority key, too"),
            (keys[0], secret, "it is the release's secret"),
            (keys[0], "AAEC", "next authority key: expected an Ed25519 public key"),
        ]
        for (key, next, expected) in wrong {
            let said = message {
                _ = try ReleaseKey(id: "r_1", secret: secret, authorityKey: key, nextAuthorityKey: next)
            }
            #expect(said.contains(expected))
        }
    }

    @Test func theCheckPassesAfterARotationToTheNextKey() async throws {
        let world = try await World()
        let next = SigningKey(try PrivateKey(random: .ed25519).publicKey)
        // The authority signs with what this app was built with as the next key.
        let release = ReleaseKey(
            world.release.credentials, authorityKey: next, nextAuthorityKey: world.release.authorityKey,
            app: nil)
        let client = try CountersignClient(
            release: release, baseURL: "https://api.example.com", vault: .folder(world.folder.path),
            trust: .system, options: world.options)
        #expect(try await client.checkSetup() == 0)
        #expect(try await client.checkSetup() == 0)
    }

    @Test func theCheckPassesWhereAllIsRight() async throws {
        let world = try await World()
        await world.authority.advance(by: 100)
        #expect(try await world.client().checkSetup() == 100)
    }

    @Test func theCheckNamesAWrongAuthorityKey() async throws {
        let world = try await World()
        let stranger = try PrivateKey(random: .ed25519)
        let release = ReleaseKey(
            world.release.credentials, authorityKey: SigningKey(stranger.publicKey), app: nil)
        let client = try CountersignClient(
            release: release, baseURL: "https://api.example.com", vault: .folder(world.folder.path),
            trust: .system,
            options: world.options)
        await #expect { try await client.checkSetup() } throws: { error in
            guard case CountersignError.notGenuine(let detail) = error else { return false }
            return detail.contains("authority key of the release key is another server's")
        }
    }

    @Test func aMissingAuthorityKeyIsNamedAtTheFirstRefusal() async throws {
        let world = try await World { $0.missingAuthorityKey = .leavesRefusalsUnverified }
        let release = ReleaseKey(world.release.credentials, authorityKey: nil, app: nil)
        let client = try CountersignClient(
            release: release, baseURL: "https://api.example.com", vault: .folder(world.folder.path),
            trust: .system,
            options: world.options)
        await world.backend.plan(.refuse("unknown-key"), at: "/notes")
        await #expect { try await client.data(for: APIRequest("/notes").byTheApp()) } throws: { error in
            guard case CountersignError.authorityKeyMissing(let refusal) = error else { return false }
            return refusal.code == "unknown-key" && !refusal.isGenuine
        }
        #expect(await world.backend.reactions == 1)
    }
}
