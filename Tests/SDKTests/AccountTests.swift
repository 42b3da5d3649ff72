import Testing

@testable import Countersign

/// From sign-up to sign-out, as an app sees it.
@Suite(.timeLimit(.minutes(2))) struct AccountTests {
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
        await #expect { try await client.signUp("alice", "another") } throws: { error in
            guard case CountersignError.refused(let refusal) = error else { return false }
            return refusal.code == "name-taken" && refusal.isGenuine
        }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        // The vault goes with it, and a login looks there.
        withExtendedLifetime(world) {}
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
