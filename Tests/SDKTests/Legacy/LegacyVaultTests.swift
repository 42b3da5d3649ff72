import ClientFakes
import CountersignClient
import CountersignTestKit
import CountersignWire
import Testing

@testable import Countersign

/// A legacy client's use of the vault, and how long it waits for a server while it holds the lease.
@Suite(.timeLimit(.minutes(15))) struct LegacyVaultTests {
    private func client(
        _ carrier: MockTransport, _ folder: TestFolder, _ remembering: LegacyOptions.Remembering
    ) throws -> LegacyClient {
        var options = LegacyOptions()
        options.transport = .custom(carrier)
        options.remembers = remembering
        return try LegacyClient(
            scheme: .unsigned, baseURL: "https://old.example.com", login: LegacyLogin(.md5),
            vault: .folder(folder.path),
            trust: [
                .host("old.example.com", pins: [LegacyClientTests.pin], backups: [LegacyClientTests.backup])
            ],
            options: options)
    }

    @Test func whatAnEarlierVersionKeptDoesNotComeBack() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: LegacyClientTests.login) }
        try await client(carrier, folder, .session).logIn("anna", "pass word")
        let anna = CountersignState.active(CountersignAccount(name: "anna", session: "7"))
        #expect(await (try client(carrier, folder, .session)).resume() == anna, "it is kept")
        #expect(await (try client(carrier, folder, .nothing)).resume() == .signedOut(.nobody))
        #expect(await (try client(carrier, folder, .session)).resume() == .signedOut(.nobody), "it is gone")
    }

    @Test func norDoesWhatWasKeptMeanwhileOnceSomebodySignsOut() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: LegacyClientTests.login) }
        let forgetful = try client(carrier, folder, .nothing)
        try await forgetful.logIn("anna", "pass word")
        try await client(carrier, folder, .session).logIn("anna", "pass word")
        try await forgetful.logOut()
        #expect(await (try client(carrier, folder, .session)).resume() == .signedOut(.nobody))
    }

    @Test func aVaultThatCannotBeReadIsSaidToBeSoAndNothingIsSent() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: LegacyClientTests.login) }
        try await client(carrier, folder, .session).logIn("anna", "pass word")
        try folder.spoil("items.key")
        let later = try client(carrier, folder, .session)
        let sent = carrier.seen.count
        #expect(later.state == .unavailable)
        #expect(await later.resume() == .unavailable)
        await #expect(throws: CountersignError.self) { try await later.data(for: APIRequest("/a")) }
        await #expect(throws: CountersignError.self) { try await later.logIn("anna", "pass word") }
        #expect(carrier.seen.count == sent)
        var open = APIRequest("/news")
        open.caller = .app
        #expect(try await later.data(for: open).1.status == 200, "what needs no session goes on")
    }

    @Test func anExchangeUnderTheLeaseComesToAnEnd() async throws {
        let carrier = MockTransport { _ throws(TransportError) in
            try? await ManualClock().sleep(for: .seconds(1))
            throw TransportError(.cancelled, fate: .outcomeUnknown)
        }
        var options = LegacyOptions()
        options.transport = .custom(carrier)
        let context = try CallContext(
            try BaseURL("https://old.example.com", encryption: .required), options: options, trust: [],
            report: StatePublisher())
        var transport = AuthorityTransport(context, refresh: "/login/token.php", largestResponse: 100)
        transport.timeout = .milliseconds(50)
        let impatient = transport
        await #expect {
            _ = try await impatient.send(
                Draft(method: "POST", target: Array("/".utf8), authority: "old.example.com"))
        } throws: { error in
            (error as? TransportError)?.cause == .timedOut(.total)
        }
        #expect(carrier.seen.count == 1)
    }
}
