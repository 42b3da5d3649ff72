import CountersignSeal
import CountersignTestServer
import CountersignTrust
import Glibc
import Testing
import Waiting

@testable import Countersign

/// Whom a client talks to.
@Suite(.timeLimit(.minutes(15))) struct TrustTests {
    /// The pin of another unknown key.
    private static let stranger = "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private static func server(_ certificates: Certificates) throws -> TestServer {
        try TestServer(.tls(TestServer.Credentials([certificates.leaf]))) { connection in
            while connection.readHead() != nil { connection.answer("200 OK", body: "hello") }
        }
    }

    @Test func whoIsNotPinnedGetsNoByte() async throws {
        let certificates = try Certificates()
        let server = try TrustTests.server(certificates)
        defer { server.stop() }
        let client = try certificates.client(
            server, TestFolder(),
            [.host("**.example.com", pins: [Certificates.strange], backups: [TrustTests.stranger])])
        let events = client.events
        await #expect { try await client.data(for: APIRequest("/x").byTheApp()) } throws: { error in
            guard case CountersignError.transport(let error) = error,
                case .untrusted(let verdict) = error.cause
            else {
                return false
            }
            return error.fate == .notSent && verdict.reasons == [.pinNotMet]
                && verdict.served.map(\.description) == [certificates.pin] && verdict.expected.count == 2
        }
        #expect(server.tally.connections == 1 && server.tally.received == 0)
        #expect(await first(of: events) { if case .judged = $0 { true } else { false } } != nil)
        #expect(
            await first(of: events) { if case .failed(_, .untrusted, after: _) = $0 { true } else { false } }
                != nil)
    }

    @Test func whereARuleOnlyReportsItGoesOn() async throws {
        let certificates = try Certificates()
        let server = try TrustTests.server(certificates)
        defer { server.stop() }
        let client = try certificates.client(
            server, TestFolder(),
            [
                .host(
                    "**.example.com", pins: [Certificates.strange], backups: [TrustTests.stranger],
                    mode: .reportOnly)
            ])
        let events = client.events
        #expect(try await client.data(for: APIRequest("/x").byTheApp()).1.status == 200)
        let judged = await first(of: events) { if case .judged = $0 { true } else { false } }
        guard case .judged(let verdict) = judged else {
            Issue.record("nothing was reported")
            return
        }
        #expect(verdict.decision == .reported)
    }

    @Test func aSignedSetOfPinsTakesTheOldOnesPlace() async throws {
        let certificates = try Certificates()
        let server = try TrustTests.server(certificates)
        defer { server.stop() }
        let folder = try TestFolder()
        let key = try PrivateKey(random: .ed25519)
        let signers = PinUpdates.Signers(
            app: "shop", keys: [Array(key.publicKey.der.suffix(32))], version: 1,
            store: ManifestFile("\(folder.path)/pins"))
        func client() throws -> CountersignClient {
            try certificates.client(
                server, folder,
                [.host("**.example.com", pins: [certificates.pin], backups: [Certificates.strange])]
            ) { $0.pinUpdates = .signed(signers) }
        }
        func manifest(_ version: Int, _ pin: String) throws -> [UInt8] {
            let text = """
                {"app":"shop","version":\(version),"not_before":1999999999,"not_after":2000000001,
                 "hosts":[{"pattern":"**.example.com","pins":["\(pin)"],\
                "backups":["\(Certificates.strange)"]}]}
                """
            return try #require(SignedManifest.text(of: Array(text.utf8), signedBy: key))
        }
        let first = try client()
        #expect(first.core.trust.isPinned)
        #expect(try await first.data(for: APIRequest("/x").byTheApp()).1.status == 200)
        #expect(throws: CountersignError.self) { try first.updatePins(manifest(1, TrustTests.stranger)) }
        #expect(throws: CountersignError.self) { try first.updatePins(Array("{}".utf8)) }
        #expect(try await first.data(for: APIRequest("/x").byTheApp()).1.status == 200)
        let (connections, received) = (server.tally.connections, server.tally.received)
        #expect(try first.updatePins(manifest(2, TrustTests.stranger)) == 2)
        // The connection that stood is cut, and under the new pins there is none.
        await #expect { try await first.data(for: APIRequest("/x").byTheApp()) } throws: { error in
            guard case CountersignError.transport(let error) = error, case .untrusted = error.cause else {
                return false
            }
            return true
        }
        #expect(server.tally.connections == connections + 1 && server.tally.received == received)
        // The next start begins with what was taken up.
        await #expect(throws: CountersignError.self) {
            try await client().data(for: APIRequest("/x").byTheApp())
        }
        #expect(server.tally.received == received)
    }

    @Test func aSetOfPinsIsFetched() async throws {
        let key = try PrivateKey(random: .ed25519)
        let manifest = """
            {"app":"shop","version":7,"not_before":1800000000,"not_after":1800000001,
             "hosts":[{"pattern":"api.example.com","pins":["\(Certificates.strange)"],\
            "backups":["\(TrustTests.stranger)"]}]}
            """
        let text = try #require(SignedManifest.text(of: Array(manifest.utf8), signedBy: key))
        let served = Locked<[UInt8]>([])
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                let body = served.with { $0 }
                let isThere = head.hasPrefix("GET /countersign/v1/pins/shop HTTP/1.1") && !body.isEmpty
                connection.answer(
                    isThere ? "200 OK" : "404 Not Found", body: String(decoding: body, as: UTF8.self))
            }
        }
        defer { server.stop() }
        let folder = try TestFolder()
        let client = try server.client(folder) { options in
            options.clock.wall = { 1_800_000_000 }
            options.pinUpdates = .signed(
                PinUpdates.Signers(
                    app: "shop", keys: [Array(key.publicKey.der.suffix(32))],
                    store: ManifestFile("\(folder.path)/pins")
                ))
        }
        #expect(try await client.fetchPins() == nil)
        served.with { $0 = text }
        #expect(try await client.fetchPins() == 7)
        #expect(try await client.fetchPins() == nil)
        served.with { $0 = Array("{}".utf8) }
        await #expect(throws: CountersignError.self) { try await client.fetchPins() }
    }

    /// A manifest that does not pin the client's own host is refused; one that was kept is reported, and the
    /// client starts.
    @Test(.timeLimit(.minutes(15))) func noManifestUnpinsTheOwnHost() async throws {
        let key = try PrivateKey(random: .ed25519)
        let folder = try TestFolder()
        let store = ManifestFile("\(folder.path)/pins")
        var options = CountersignOptions()
        options.clock.wall = { 1_800_000_000 }
        options.passwordLogin = .onFirstSignInOverPinnedTLS
        options.pinUpdates = .signed(
            PinUpdates.Signers(app: "shop", keys: [Array(key.publicKey.der.suffix(32))], store: store))
        let (told, events) = AsyncStream.makeStream(of: CountersignEvent.self)
        options.log = .handler(from: .notice) { entry in
            if case .pinsDiscarded = entry.event { events.yield(entry.event) }
        }
        func client() throws -> CountersignClient {
            try CountersignClient(
                release: someRelease(), baseURL: "https://api.example.com", vault: .folder("/dev/null/x"),
                trust: [
                    .host("**.example.com", pins: [Certificates.strange], backups: [TrustTests.stranger])
                ], options: options)
        }
        let manifest = """
            {"app":"shop","version":1,"not_before":1800000000,"not_after":1800000001,
             "hosts":[{"pattern":"api.exampel.com","pins":["\(Certificates.strange)"],\
            "backups":["\(TrustTests.stranger)"]}]}
            """
        let text = try #require(SignedManifest.text(of: Array(manifest.utf8), signedBy: key))
        let first = try client()
        #expect {
            try first.updatePins(text)
        } throws: { error in
            if case CountersignError.manifest(.hostNotPinned("api.example.com")) = error {
                true
            } else {
                false
            }
        }
        #expect(first.core.trust.isPinned)
        try store.write(text)
        let second = try client()
        #expect(second.discardedPins == .hostNotPinned("api.example.com") && second.core.trust.isPinned)
        // The event comes while the client is made: only the log can see it.
        var iterator = told.makeAsyncIterator()
        #expect(await iterator.next() == .pinsDiscarded(.hostNotPinned("api.example.com")))
    }

    @Test func ofTwoSetsAtOnceTheNewerOneStays() async throws {
        let key = try PrivateKey(random: .ed25519)
        let manifests = try (1...2).map { version in
            let text = """
                {"app":"shop","version":\(version),"not_before":1800000000,"not_after":1800000001,
                 "hosts":[{"pattern":"v\(version).example.com","pins":["\(Certificates.strange)"],\
                "backups":["\(TrustTests.stranger)"]}]}
                """
            return try #require(SignedManifest.text(of: Array(text.utf8), signedBy: key))
        }
        let folder = try TestFolder()
        let store = ManifestFile("\(folder.path)/pins")
        let carrier = LastTrust { (try? store.read()) == manifests[1] }
        var options = CountersignOptions()
        options.clock.wall = { 1_800_000_000 }
        options.missingAuthorityKey = .leavesRefusalsUnverified
        options.transport = .custom(carrier)
        options.pinUpdates = .signed(
            PinUpdates.Signers(app: "shop", keys: [Array(key.publicKey.der.suffix(32))], store: store))
        let client = try CountersignClient(
            release: someRelease(), baseURL: "https://api.example.com", vault: .folder("/dev/null/x"),
            trust: .system,
            options: options)
        let first = Task.detached { try client.updatePins(manifests[0]) }
        await until("the first replacement") { carrier.isBusy }
        #expect(try client.updatePins(manifests[1]) == 2)
        #expect(try await first.value == 1)
        #expect(carrier.last == "v2.example.com")
    }

    @Test func onlyWhoWasNamedMayReplacePins() throws {
        var options = CountersignOptions()
        options.missingAuthorityKey = .leavesRefusalsUnverified
        let client = try CountersignClient(
            release: someRelease(), baseURL: "https://api.example.com", vault: .folder("/dev/null/x"),
            trust: .system,
            options: options)
        #expect { try client.updatePins(Array("{}".utf8)) } throws: { error in
            if case CountersignError.misuse = error { true } else { false }
        }
    }

    @Test func aVaultThatCannotBeReadKeepsNoPinsFromBeingReplaced() throws {
        let folder = try TestFolder()
        let key = try PrivateKey(random: .ed25519)
        var options = CountersignOptions()
        options.clock.wall = { 1_800_000_000 }
        options.missingAuthorityKey = .leavesRefusalsUnverified
        options.pinUpdates = .signed(
            PinUpdates.Signers(
                app: "shop", keys: [Array(key.publicKey.der.suffix(32))],
                store: ManifestFile("\(folder.path)/pins")))
        let client = try CountersignClient(
            release: someRelease(), baseURL: "https://api.example.com", vault: .folder("/dev/null/x"),
            trust: .system,
            options: options)
        let manifest = """
            {"app":"shop","version":1,"not_before":1800000000,"not_after":1800000001,
             "hosts":[{"pattern":"api.example.com","pins":["\(Certificates.strange)"],\
            "backups":["\(TrustTests.stranger)"]}]}
            """
        let text = try #require(SignedManifest.text(of: Array(manifest.utf8), signedBy: key))
        #expect(!client.core.trust.isPinned)
        #expect(try client.updatePins(text) == 1)
        #expect(client.core.trust.isPinned)
    }

    @Test(arguments: [
        ("exact", true), ("wild", true), ("reporting", false), ("other", false), ("system", false),
        ("anything", false), ("nameless", false), ("own key", true), ("all", true),
    ])
    func isPinned(_ rule: String, _ expected: Bool) throws {
        let pins = try Trust.Policy.pins([Certificates.strange], backups: [TrustTests.stranger])
        let rules: [String: Trust.Rule] = [
            "exact": try .host("api.example.com", pins), "wild": try .host("**.example.com", pins),
            "reporting": try .host("**.example.com", pins, mode: .reportOnly),
            "other": try .host("www.example.com", pins), "system": try .host("api.example.com", .system),
            "anything": try .host("api.example.com", .acceptsAnyServerAndSoAnyAttacker),
            "nameless": try .host("api.example.com", pins.withoutCheckingTheHostName()),
            "own key": try .host(
                "api.example.com", pins.withoutCheckingTheHostName().withoutCheckingTheChain()),
            "all": try .host("api.example.com", .all([.system, pins])),
        ]
        let trust = Trust([try #require(rules[rule])], others: .system)
        #expect(trust.isPinned(try Trust.Host("api.example.com")) == expected)
    }
}

/// A transport that sends nothing and records the last trust.
private final class LastTrust: RequestTransport {
    private let pattern = Locked("")
    private let busy = Locked(false)
    /// Whether the second manifest is stored, so that an unordered replacement would overtake the first.
    private let isNext: @Sendable () -> Bool

    init(isNext: @escaping @Sendable () -> Bool) { self.isNext = isNext }

    var isBusy: Bool { busy.with { $0 } }
    var last: String { pattern.with { $0 } }

    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse { throw TransportError(.offline, fate: .notSent) }

    func replaceTrust(by trust: Trust) {
        guard let first = trust.rules.first.map({ "\($0.pattern)" }) else { return }
        if first == "v1.example.com" {
            busy.with { $0 = true }
            blockUntil("the second manifest") { isNext() }
        }
        pattern.with { $0 = first }
    }
}
