import ClientFakes
import CountersignTransport
import Testing

@testable import Countersign

/// From sign-up to sign-out, as an app sees it.
@Suite(.timeLimit(.minutes(15))) struct AccountTests {
    @Test func fromSignUpToSignOut() async throws {
        let world = try await World()
        let client = try world.client()
        #expect(client.state == .unavailable)
        #expect(await client.resume() == .signedOut(.nobody))
        try await client.signUp("Alice", "correct horse")
        let account = try await client.logIn("Alice", "correct horse")
        #expect(account.name == "alice")
        #expect(client.state == .active(account))
        let (data, response) = try await client.data(for: APIRequest("/orders"))
        #expect(response.status == 200 && response.isGenuine && response.signer == .session)
        #expect(response.length == .bytes(Int64(data.count)) && !data.isEmpty)
        try await client.logOut()
        guard case .signedOut(.ended(let end)) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(end.how == .signedOut)
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.notSignedIn = error { true } else { false }
        }
    }

    /// The next start of the app tells the server, without any request of the app's; the sign-out itself says
    /// truly whether the server knows.
    @Test func aSignOutOfflineIsToldAtTheNextStart() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.fail(TransportError(.offline, fate: .notSent)), at: "/logout")
        #expect(try await client.logOut() == .serverIsToldLater)
        #expect(await world.authority.session?.ended == nil)
        let next = try world.client()
        #expect(try await next.lastAccountName() == "alice")
        await next.finishLogOuts(within: .seconds(10))
        #expect(await world.authority.session?.ended == "signed-out")
        try await client.logIn("alice", "correct horse")
        #expect(try await client.logOut() == .serverKnows)
    }

    @Test func whatWasTypedIsToldApart() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await #expect { try await client.logIn("alice", "wrong") } throws: { error in
            if case CountersignError.wrongCredentials = error { true } else { false }
        }
        await #expect { try await client.logIn("a\u{0}b", "correct horse") } throws: { error in
            if case CountersignError.unusableName = error { true } else { false }
        }
        await #expect { try await client.signUp("bob", "") } throws: { error in
            if case CountersignError.unusablePassword = error { true } else { false }
        }
        await #expect { try await client.signUp("alice", "another one") } throws: { error in
            guard case CountersignError.refused(let refusal) = error else { return false }
            return refusal.code == "name-taken" && refusal.isGenuine
        }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        // The vault goes with it, and a login looks there.
        withExtendedLifetime(world) {}
    }

    @Test func aNewPasswordKeepsTheRules() async throws {
        let world = try await World { $0.passwordRules.isBreached = { $0 == "password1" } }
        let client = try world.client()
        for (password, reason) in [
            ("1234567", "at least 8 characters"), ("password1", "known from a breach"),
        ] {
            await #expect { try await client.signUp("bob", password) } throws: { error in
                if case CountersignError.unusablePassword(let text) = error {
                    text.contains(reason)
                } else {
                    false
                }
            }
        }
        // Each code point counts as one character, however many bytes it takes.
        await #expect { try await client.signUp("bob", "ÄÖÜäöüß") } throws: { error in
            if case CountersignError.unusablePassword = error { true } else { false }
        }
        #expect(await world.backend.sent.isEmpty)
        try await client.signUp("bob", "ÄÖÜäöüßẞ")
        _ = try await client.logIn("bob", "ÄÖÜäöüßẞ")
        await #expect { try await client.changePassword(from: "ÄÖÜäöüßẞ", to: "short") } throws: { error in
            if case CountersignError.unusablePassword = error { true } else { false }
        }
    }

    @Test func theAuthorityMayDemandMore() async throws {
        let world = try await World()
        await world.authority.demandPasswords(of: 12)
        let client = try world.client()
        await #expect { try await client.signUp("bob", "correct hor") } throws: { error in
            if case CountersignError.unusablePassword(let text) = error { text.contains("12") } else { false }
        }
        try await client.signUp("bob", "correct hors")
    }

    /// Otherwise a password that the app's policy forbids would be registered.
    @Test func anAuthorityMustStateTheShortestPassword() async throws {
        let world = try await World()
        await world.authority.demandPasswords(of: nil)
        let client = try world.client()
        await #expect(throws: CountersignError.self) { try await client.signUp("bob", "correct horse") }
    }

    @Test func thePasswordGoesToNobodyWhoIsNotPinned() async throws {
        let world = try await World()
        let client = try world.client()
        await #expect { try await client.logIn("alice", "correct horse", by: .passwordIsSent) } throws: {
            error in
            if case CountersignError.certificateNotPinned = error { true } else { false }
        }
        #expect(await world.backend.sent.isEmpty)
    }
}
