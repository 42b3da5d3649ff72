import Countersign
import CountersignTestKit
import Testing

@Suite struct SignedInVaultTests {
    private func client(_ vault: Vault, _ transport: MockTransport, _ clock: ManualClock) throws
        -> CountersignClient
    {
        var options = CountersignOptions()
        options.transport = .custom(transport)
        options.clock = clock.deviceClock
        options.missingAuthorityKey = .leavesRefusalsUnverified
        let key = try ReleaseKey(
            id: "r_test", secret: "VGhpcnR5LXR3byBieXRlcyBvZiBhIHJlbGVhc2Uga2V5IQ", app: "notes")
        return try CountersignClient(
            release: key, baseURL: "https://api.example.com", vault: .using(vault), trust: .system,
            options: options)
    }

    @Test func aClientIsSignedInWithoutAServer() async throws {
        let faulty = try FaultyVault()
        let transport = MockTransport { request in MockResponse(text: request.target) }
        try faulty.vault.pretend("anna", isSignedInTo: "api.example.com", app: "notes")
        let client = try client(faulty.vault, transport, ManualClock())
        let (data, response) = try await client.data(for: APIRequest("/notes"))
        #expect(Array(data) == Array("/notes".utf8) && !response.isGenuine)
        let seen = try #require(transport.seen.first)
        #expect(seen.value(of: "signature-input")?.contains("keyid=") == true)
        #expect(seen.value(of: "countersign-release") == "r_test")
        guard case .active(let account) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(account.name == "anna")
    }

    /// Without ``pretend(_:isSignedInTo:app:)`` no account is signed in; a closed vault is neither signed in
    /// nor signed out.
    @Test func aClientOverAnEmptyVaultIsNot() async throws {
        let faulty = try FaultyVault()
        let transport = MockTransport([])
        let client = try client(faulty.vault, transport, ManualClock())
        await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/notes")) }
        #expect(client.state == .signedOut(.nobody) && transport.attempts == 0)

        let closed = try FaultyVault()
        try closed.vault.pretend("anna", isSignedInTo: "api.example.com", app: "notes")
        // The vault is read to determine the call's account, and again before sending: an interceptor in
        // between may respond without it.
        for number in 1...2 { closed.plan(.locked, at: .read, number: number) }
        let other = try self.client(closed.vault, transport, ManualClock())
        do {
            _ = try await other.data(for: APIRequest("/notes"))
            Issue.record("sent")
        } catch {
            guard case .vaultLocked = error else {
                Issue.record("\(error)")
                return
            }
        }
        #expect(closed.pending == 0 && transport.attempts == 0)
    }
}
