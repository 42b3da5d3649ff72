import ClientFakes
import CountersignMemory
import CountersignClient
import CountersignSeal
import CountersignTestKit
import CountersignTransport
import CountersignTrust
import CountersignWire
import Testing

@testable import Countersign

/// Proves, of `CountersignOptions.passwordLogin`: requests do not reveal which accounts are on the login
/// ladder, the password is sent only to a pinned certificate, and never from a device that has signed the
/// account in by OPAQUE.
@Suite(.timeLimit(.minutes(15))) struct PasswordFallbackTests {
    private static let pin = "sha256/\(Base64.encode([UInt8](repeating: 1, count: 32).span, as: .standard))"
    private static let backup =
        "sha256/\(Base64.encode([UInt8](repeating: 2, count: 32).span, as: .standard))"
    private static let password = "correct horse"

    /// One request as an observer of a connection sees it: its target is a guess from its size.
    private struct Seen: Equatable {
        let target: String
        /// Of the body, in bytes.
        let size: Int
    }

    private let world: World
    /// One for each device.
    private let folders: [TestFolder]

    init() async throws {
        world = try await World()
        folders = try (0..<4).map { _ in try TestFolder() }
        await world.authority.putOnLadder("laura", Self.password)
    }

    /// A process of the app on a device.
    private func client(
        on device: Int = 0, _ change: (inout CountersignOptions) -> Void = { _ in }
    ) throws -> CountersignClient {
        var options = world.options
        options.passwordLogin = .onFirstSignInOverPinnedTLS
        change(&options)
        return try CountersignClient(
            release: world.release, baseURL: "https://api.example.com", vault: .folder(folders[device].path),
            trust: [.host("api.example.com", pins: [Self.pin], backups: [Self.backup])], options: options)
    }

    /// The requests of a login, and whether it succeeded.
    private func logIn(
        _ client: CountersignClient, _ name: String, _ password: String
    ) async throws -> (isSignedIn: Bool, seen: [Seen]) {
        let before = await world.backend.sent.count
        var isSignedIn = false
        do throws(CountersignError) {
            try await client.logIn(name, password)
            isSignedIn = true
        } catch {
            guard case .wrongCredentials = error else { throw error }
        }
        let sent = await world.backend.sent.dropFirst(before)
        return (
            isSignedIn,
            sent.map { request in
                var size = 0
                if case .bytes(let bytes) = request.body { size = bytes.count }
                return Seen(target: String(decoding: request.target, as: UTF8.self), size: size)
            }
        )
    }

    private static func targets(_ routes: String...) -> [String] { routes.map { "/countersign/v1/\($0)" } }

    @Test(
        "a wrong password sends the same for ladder accounts, OPAQUE accounts and unknown names"
    )
    func sameForAll() async throws {
        try await client(on: 3).signUp("oskar", Self.password)
        var patterns: [[Seen]] = []
        for (device, name) in ["laura", "oskar", "nadja"].enumerated() {
            let attempt = try await logIn(client(on: device), name, "a wrong one")
            #expect(!attempt.isSignedIn)
            patterns.append(attempt.seen)
        }
        #expect(patterns[0].map(\.target) == Self.targets("login/start", "login/password"))
        #expect(patterns[1] == patterns[0] && patterns[2] == patterns[0])
    }

    @Test("a right password takes the account off the ladder, ends that session and signs in by OPAQUE")
    func leavesTheLadder() async throws {
        let client = try client()
        let first = try await logIn(client, "laura", Self.password)
        #expect(first.isSignedIn)
        #expect(
            first.seen.map(\.target)
                == Self.targets("login/start", "login/password", "logout", "login/start", "login/finish"))
        #expect(await !world.authority.isOnLadder("laura"))
        let login = try #require(try await client.kept().login)
        var isOfDevice = false
        if case .device = login.session { isOfDevice = true }
        #expect(isOfDevice, "a session of OPAQUE's")
        let logout = try #require(await world.backend.copies(of: "/logout").first)
        #expect(logout.fields.contains(HeaderField("Authorization", value: "Bearer b_token-of-one")))
        let second = try await logIn(self.client(on: 1), "laura", Self.password)
        #expect(second.isSignedIn && second.seen.map(\.target) == Self.targets("login/start", "login/finish"))
    }

    @Test(
        "never from a device that has signed the account in or up by OPAQUE, whatever became of the process",
        arguments: [CountersignOptions.Remembering.session, .nothing])
    func neverAfterOpaque(_ remembering: CountersignOptions.Remembering) async throws {
        func process() throws -> CountersignClient { try client { $0.remembers = remembering } }
        try await client(on: 1).signUp("oskar", Self.password)
        #expect(try await logIn(process(), "oskar", Self.password).isSignedIn)
        let later = try await logIn(process(), "OSKAR", "a wrong one")
        #expect(!later.isSignedIn && later.seen.map(\.target) == Self.targets("login/start"))
        let registered = try await logIn(client(on: 1), "oskar", "a wrong one")
        #expect(registered.seen.map(\.target) == Self.targets("login/start"))
        let other = try await logIn(process(), "laura", "a wrong one")
        #expect(
            other.seen.map(\.target) == Self.targets("login/start", "login/password"), "another account's")
    }

    @Test("what an app without the option has signed in is known to its next version")
    func notedWithoutTheOption() async throws {
        try await client(on: 1).signUp("oskar", Self.password)
        let before = try client { $0.passwordLogin = .never }
        #expect(try await logIn(before, "oskar", Self.password).isSignedIn)
        try await before.logOut()
        #expect(
            try await logIn(client(), "oskar", "a wrong one").seen.map(\.target)
                == Self.targets("login/start"))
    }

    @Test("a session of a version that noted nobody is noted before the server can end it")
    func earlierSessionsAreNoted() async throws {
        try await client(on: 1).signUp("oskar", Self.password)
        let name = try AccountName(normalizing: "oskar")
        let earlier = try client { $0.passwordLogin = .never }
        try earlier.core.keeper.makeUpSession(of: name, app: "demo", expires: world.options.clock.wall() + 60)
        let process = try client()
        try await process.forgetSession()
        #expect(try await process.kept().login == nil)
        #expect(
            try await logIn(process, "oskar", "a wrong one").seen.map(\.target)
                == Self.targets("login/start"))
    }

    @Test("not at all unless the app says so")
    func offByDefault() async throws {
        #expect(CountersignOptions().passwordLogin == .never)
        let attempt = try await logIn(client { $0.passwordLogin = .never }, "laura", Self.password)
        #expect(!attempt.isSignedIn && attempt.seen.map(\.target) == Self.targets("login/start"))
    }

    @Test("a client whose server's certificate is not pinned is not made, whatever else is allowed")
    func pinnedAlone() throws {
        var options = world.options
        options.passwordLogin = .onFirstSignInOverPinnedTLS
        options.bearerSecrets = .toAnyCertificateThatVerifies
        options.encryption = .noneSoThatAnybodyReadsAndChangesEverything
        for url in ["https://api.example.com", "http://127.0.0.1:8080"] {
            #expect(throws: CountersignError.self) {
                try CountersignClient(
                    release: world.release, baseURL: url, vault: .folder(folders[0].path), trust: .system,
                    options: options)
            }
        }
    }

    /// Runs an action before the response to `login/start` is delivered.
    private struct Meanwhile: RequestTransport {
        let carrier: any RequestTransport
        let step: @Sendable () throws -> Void

        func send(
            _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
        ) async throws(TransportError) -> IncomingResponse {
            let answer = try await carrier.send(request, progress: progress)
            guard String(decoding: request.target, as: UTF8.self).hasSuffix("/login/start") else {
                return answer
            }
            do {
                try step()
            } catch {
                throw TransportError(.machine("\(error)"), fate: .brokenOff)
            }
            return answer
        }

        func replaceTrust(by trust: Trust) {}
    }

    @Test("pins are not replaced during the login by none for this server")
    func pinsReplacedMeanwhile() async throws {
        let key = try PrivateKey(random: .ed25519)
        let now = world.options.clock.wall()
        let text = """
            {"app":"shop","version":2,"not_before":\(now - 1),"not_after":\(now + 60),
             "hosts":[{"pattern":"elsewhere.example.com","pins":["\(Self.pin)"],\
            "backups":["\(Self.backup)"]}]}
            """
        let manifest = try #require(SignedManifest.text(of: Array(text.utf8), signedBy: key))
        let later = Locked<CountersignClient?>(nil)
        let client = try client {
            $0.pinUpdates = .signed(
                PinUpdates.Signers(
                    app: "shop", keys: [Array(key.publicKey.der.suffix(32))], version: 1,
                    store: ManifestFile("\(folders[0].path)/pins")))
            guard case .custom(let carrier) = $0.transport else { return }
            $0.transport = .custom(
                Meanwhile(carrier: carrier) { _ = try later.with { $0 }?.updatePins(manifest) })
        }
        later.with { $0 = client }
        await #expect(throws: CountersignError.self) { try await client.logIn("laura", Self.password) }
        #expect(client.core.trust.isPinned)
        #expect(await world.authority.isOnLadder("laura"))
        #expect(await world.backend.copies(of: "/login/password").isEmpty)
    }

    @Test("an unreadable vault sends no password")
    func unreadableVault() async throws {
        _ = try await logIn(client(), "laura", "a wrong one")
        try folders[0].spoil("items.key")
        await #expect(throws: CountersignError.self) { try await client().logIn("laura", Self.password) }
        #expect(await world.authority.isOnLadder("laura"))
    }
}
