// The key storage that a device states: the server returns it, binds it to the login, and stores it with the
// session; old clients state none, and an unknown word counts as none.
import CountersignAuthority
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct KeyStorageTests {
    private func stored(_ reply: TestServer.Reply, _ server: TestServer) throws -> StoredSession {
        let text = Array(try #require(reply["token"]).utf8)
        let found = SessionToken(text.span)
        let token = try #require(found)
        return try #require(try server.deployment.store.session(token.id))
    }

    @Test(arguments: KeyStorage.allCases.map(Optional.some) + [nil])
    func isKeptWithTheSession(_ storage: KeyStorage?) async throws {
        let server = try TestServer()
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        bob.device.keyStorage = storage
        let reply = try await bob.logIn()
        try #require(reply.status == 200)
        #expect(try stored(reply, server).keyStorage == storage)
        let started = try await bob.start([UInt8](repeating: 0, count: 96))
        #expect(started["key_storage"] == (started.status == 200 ? storage?.rawValue : nil))
    }

    /// If a man in the middle changes, adds or removes the stated storage, the login finish is refused.
    @Test func isBound() async throws {
        let server = try TestServer()
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        for (said, sent) in [(KeyStorage.software, "tpm"), (.tpm, "software"), (nil, "secure-enclave")] {
            bob.device.keyStorage = said
            bob.statedStorage = .string(sent)
            #expect(try await bob.logIn()["code"] == "wrong-credentials")
        }
        bob.device.keyStorage = .tpm
        bob.statedStorage = .null
        #expect(try await bob.logIn()["code"] == "wrong-credentials")
    }

    @Test func aWordOfALaterProtocolCountsAsNothingSaid() async throws {
        let server = try TestServer()
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        for word in ["strongbox", "", "TPM", String(repeating: "x", count: 10_000)] {
            bob.statedStorage = .string(word)
            let reply = try await bob.logIn()
            try #require(reply.status == 200, "\(reply.refusal?.detail ?? "")")
            #expect(try stored(reply, server).keyStorage == nil)
        }
        bob.statedStorage = .integer(1)
        let started = try await bob.start([UInt8](repeating: 0, count: 96))
        #expect(started.status == 400 && started["code"] == "malformed")
    }
}
