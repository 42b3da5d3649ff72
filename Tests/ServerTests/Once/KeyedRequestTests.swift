import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignServer

/// The parts of a request that make two requests equal.
@Suite struct KeyedRequestTests {
    /// The request as it is recorded; nil if it is not recorded.
    private func read(
        _ server: TestServer, as signer: Credentials? = nil, nonce: String,
        _ change: (inout Draft) -> Void = { _ in }
    ) async throws -> IdempotentRequest? {
        var draft = Draft(method: "POST", target: Array("/pay?a=1".utf8), authority: TestServer.authority)
        draft.setField("Idempotency-Key", to: "k")
        draft.setField("Content-Type", to: "text/plain")
        draft.body = Array("100".utf8)
        change(&draft)
        try MessageSignatures().sign(&draft, as: signer ?? server.release, at: server.clock.now, nonce: nonce)
        let request = draft.request()
        let caller = try await server.gate.judge(request)
        return try IdempotencyKeyParser.read(request, from: caller, calling: { .unknown }, at: 7)
    }

    @Test func copiesAreOneAndAllElseIsNot() async throws {
        let server = try TestServer()
        let first = try #require(try await read(server, nonce: "n-first") { _ in })
        #expect(first.begun == 7 && first.scope.description == "release \(server.release.keyID)")
        #expect(try await read(server, nonce: "n-second") { _ in } == first)
        // A field that does not identify the request may differ between copies.
        #expect(try await read(server, nonce: "n-accept") { $0.setField("Accept", to: "text/html") } == first)
        let changes: [(inout Draft) -> Void] = [
            { $0.method = "PUT" }, { $0.target = Array("/pay?a=2".utf8) }, { $0.target = Array("/pay".utf8) },
            { $0.body = Array("101".utf8) }, { $0.body = [] },
            { $0.setField("Content-Type", to: "text/html") },
            { $0.fields.removeAll { $0.name == "Content-Type" } },
        ]
        var digests = [first.digest]
        for (index, change) in changes.enumerated() {
            let other = try #require(try await read(server, nonce: "n-change-\(index)", change))
            #expect(other.key == first.key && other.scope == first.scope)
            digests.append(other.digest)
        }
        #expect(Set(digests).count == digests.count)
        let otherKey = try #require(
            try await read(server, nonce: "n-key") { $0.setField("Idempotency-Key", to: "l") })
        #expect(otherKey.key != first.key && otherKey.digest == first.digest)
    }

    @Test func eachAccountAndReleaseHasKeysOfItsOwn() async throws {
        let server = try TestServer()
        let (alice, bob) = (try TestClient(server, "alice"), try TestClient(server, "bob"))
        for client in [alice, bob] { try await client.signUp() }
        func request(as signer: Credentials) async throws -> IdempotentRequest {
            try #require(try await read(server, as: signer, nonce: "n-\(signer.keyID)"))
        }
        let requests = [
            try await request(as: alice.session()), try await request(as: bob.session()),
            try await request(as: server.release), try await request(as: server.otherRelease),
        ]
        #expect(Set(requests.map(\.scope.description)).count == requests.count)
        // Only the scope tells them apart.
        #expect(requests.allSatisfy { $0.key == requests[0].key && $0.digest == requests[0].digest })
        let onTablet = try await TestClient(server, "alice", on: "tablet").session()
        #expect(try await request(as: onTablet) == requests[0])
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE"])
    func readingIsNotRemembered(_ method: String) async throws {
        #expect(try await read(TestServer(), nonce: "n-read") { $0.method = method } == nil)
    }

    @Test func withoutAKeyNothingIs() async throws {
        #expect(
            try await read(TestServer(), nonce: "n-none") { draft in
                draft.fields.removeAll { $0.name == "Idempotency-Key" }
            } == nil)
    }

    @Test(
        "a key that is none",
        arguments: [
            [""], [String(repeating: "k", count: 257)], ["a", "b"],
        ])
    func malformed(_ values: [String]) async throws {
        let server = try TestServer()
        let refusal = await #expect(throws: Refusal.self) {
            try await read(server, nonce: "n-malformed") { draft in
                draft.fields.removeAll { $0.name == "Idempotency-Key" }
                for value in values {
                    draft.fields.append(Draft.Field(name: "Idempotency-Key", value: value))
                }
            }
        }
        #expect(refusal?.code == .malformed)
    }
}
