import CountersignMemory
import CountersignTestKit
import CountersignTrust
import CountersignVault
import Testing
import Waiting

@testable import Countersign

/// Proves that a legacy client's session behind the presence gate opens only with user presence, and that a
/// user can sign in again without it.
@Suite(.timeLimit(.minutes(15))) struct LegacyGateTests {
    private let person = PresenceTests.Person()
    private let carrier = LegacyCallTests.server()

    private func process(
        _ folder: TestFolder, _ change: (inout LegacyOptions) -> Void = { _ in }
    ) throws -> LegacyClient {
        let gate = LegacyOptions.Gate.atLaunch(UserPresence(person))
        return try LegacyCallTests.client(carrier, folder) {
            $0.gate = gate
            change(&$0)
        }
    }

    private static let anna = CountersignState.active(CountersignAccount(name: "anna", session: "7"))

    private static func isPresenceNeeded(_ error: any Error) -> Bool {
        if case CountersignError.presenceNeeded = error { true } else { false }
    }

    @Test("the session of an earlier process is locked, is not sent, and opens for who is present")
    func atLaunch() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let first = try process(folder)
        try await first.logIn("anna", "pass word")
        #expect(first.state == Self.anna, "who signs in is through")
        _ = try await first.data(for: APIRequest("/orders"))
        #expect(person.reasons.with { $0 } == ["Sign in"])

        let second = try process(folder)
        let events = second.events
        #expect(await second.resume() == .locked)
        #expect(await firstNews(of: events) == .presenceNeeded)
        let count = carrier.seen.count
        await #expect(
            performing: { try await second.data(for: APIRequest("/orders")) }, throws: Self.isPresenceNeeded)
        await #expect(
            performing: { try await second.signed(APIRequest("/orders")) }, throws: Self.isPresenceNeeded)
        #expect(carrier.seen.count == count)
        var open = APIRequest("/news")
        open.caller = .app
        #expect(try await second.data(for: open).1.status == 200)
        person.behave(.doesNotWantTo)
        await #expect { try await second.unlock("Open") } throws: { error in
            if case CountersignError.notPresent(.retry) = error { true } else { false }
        }
        #expect(second.state == .locked)
        person.behave(.isThere)
        try await second.unlock("Open")
        #expect(second.state == Self.anna)
        #expect(try await second.data(for: APIRequest("/orders")).1.status == 200)
        let asked = person.reasons.with { $0.count }
        try await second.unlock("Open")
        #expect(person.reasons.with { $0.count } == asked, "nobody is asked twice")
    }

    @Test("without the person nothing in the vault tells who is signed in, nor any token")
    func isSealed() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        try await process(folder).logIn("anna", "pass word")
        // The same vault, read by a build without the presence gate.
        let nosy = try LegacyCallTests.client(carrier, folder)
        #expect(await nosy.resume() == .signedOut(.nobody))
        await #expect { try await nosy.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.notSignedIn = error { true } else { false }
        }
        try await nosy.logIn("anna", "pass word")
        #expect(nosy.state == Self.anna, "who leaves the gate out signs in once more")
    }

    @Test("who cannot open a session signs in anew, and the former key is gone")
    func anew() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        try await process(folder).logIn("anna", "pass word")
        let second = try process(folder)
        #expect(await second.resume() == .locked)
        try await second.logIn("anna", "pass word")
        #expect(second.state == Self.anna)
        #expect(person.reasons.with { $0 } == ["Sign in", "Sign in"])
        let third = try process(folder)
        #expect(await third.resume() == .locked)
        try await third.unlock("Open")
        #expect(third.state == Self.anna)
        try await third.logOut()
        await #expect { try await third.unlock("Open") } throws: { error in
            if case CountersignError.notSignedIn = error { true } else { false }
        }
        #expect(await (try process(folder)).resume() == .signedOut(.nobody))
    }

    @Test("a session whose key cannot be bound is not begun")
    func unbound() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        person.behave(.doesNotWantTo)
        let client = try process(folder)
        await #expect { try await client.logIn("anna", "pass word") } throws: { error in
            if case CountersignError.notPresent(.loginPage) = error { true } else { false }
        }
        #expect(carrier.seen.isEmpty, "the password was not sent")
        let remains = try LegacySessionRemains(account: "anna", userID: 7, token: "t-one")
        await #expect(throws: CountersignError.self) { try await client.adopt(remains) }
        person.behave(.isThere)
        try await client.adopt(remains)
        #expect(await (try process(folder)).resume() == .locked)
    }

    @Test(
        "a session from before the gate stays open till the next login; what ends with the process has none")
    func before() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        try await LegacyCallTests.client(carrier, folder).logIn("anna", "pass word")
        let gated = try process(folder)
        #expect(await gated.resume() == Self.anna)
        #expect(person.reasons.with { $0.isEmpty })
        try await gated.logIn("anna", "pass word")
        #expect(await (try process(folder)).resume() == .locked)
        let forgetful = try process(folder) { $0.remembers = .nothing }
        #expect(await forgetful.resume() == .signedOut(.nobody))
        try await forgetful.logIn("anna", "pass word")
        #expect(person.reasons.with { $0.count } == 1)
        await #expect { try await forgetful.unlock("Open") } throws: { error in
            if case CountersignError.misuse = error { true } else { false }
        }
    }

    @Test(
        "a request that waits goes out in the name of who comes through, and of nobody who signs in instead")
    func waits() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        try await process(folder).logIn("anna", "pass word")
        for isUnlocked in [true, false] {
            let client = try process(folder) { $0.whenLocked = .wait }
            #expect(await client.resume() == .locked)
            let count = carrier.seen.count
            let listeners = client.report.listenerCount
            let waiting = Task { try await client.data(for: APIRequest("/orders")).1.status }
            await until("the request waits") { client.report.listenerCount > listeners }
            #expect(carrier.seen.count == count)
            if isUnlocked {
                try await client.unlock("Open")
                #expect(try await waiting.value == 200)
            } else {
                try await client.logIn("anna", "pass word")
                await #expect { try await waiting.value } throws: { error in
                    if case CountersignError.accountChanged = error { true } else { false }
                }
            }
        }
    }

    @Test("another process that signs in anew locks this one's session only where it looks again")
    func twoProcesses() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let (one, two) = (try process(folder), try process(folder))
        try await one.logIn("anna", "pass word")
        try await two.logIn("anna", "pass word")
        #expect(await one.resume() == .locked, "it has another key")
        try await one.unlock("Open")
        #expect(one.state == Self.anna)
        try await two.logOut()
        #expect(await one.resume() != Self.anna)
    }
}

/// The first event that is not a state.
private func firstNews(of stream: AsyncStream<CountersignEvent>) async -> CountersignEvent? {
    await first(of: stream) { if case .state = $0 { false } else { true } }
}
