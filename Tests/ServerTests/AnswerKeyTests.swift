// Proves that a running server signs with the next answer key from the first answer after a rotation on, that
// it goes on with the key it has while the store cannot be read, and that a sign-up which was begun before a
// rotation of the registration key is finished after it.

import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire
import ScriptedClock
import Testing

@testable import CountersignServer

@Suite struct AnswerKeyTests {
    @Test func theNextAnswerIsUnderTheNextKey() async throws {
        let server = try SessionServer()
        let seeds = try server.deployment.answerSeeds()
        let verify = ResponseVerifier(
            [:],
            authority: AuthorityKeys(
                current: SigningKey(try PrivateKey(ed25519Seed: seeds.current).publicKey),
                next: SigningKey(try PrivateKey(ed25519Seed: seeds.next).publicKey)))
        let authority = try #require(KeyID(MessageSignatures.authorityKeyID))
        let stranger = Credentials(
            keyID: try #require(KeyID("r_unknown")), key: SigningKey(Secret(random: 32)))
        let before = try await server.call("GET", "/hello", as: stranger)
        #expect(try verify(before.response, to: before.request) == .holds(authority))
        _ = try server.deployment.rotateAnswerKey(.evenIfReleasesLackTheNextKey, at: server.clock.now)
        let after = try await server.call("GET", "/hello", as: stranger)
        #expect(try verify(after.response, to: after.request) == .holdsUnderNext(authority))
        // Without the next key it is a wrong signature, not an unknown key that would prove nothing.
        let old = ResponseVerifier(
            [:],
            authority: AuthorityKeys(
                current: SigningKey(try PrivateKey(ed25519Seed: seeds.current).publicKey)))
        let refusal = #expect(throws: Refusal.self) { try old(after.response, to: after.request) }
        #expect(refusal?.code == .badSignature)
    }

    @Test func aStoreThatCannotBeReadLeavesTheKey() throws {
        let server = try SessionServer()
        let signing = try ResponseSigner(server.deployment)
        let key = signing.authority.key
        let good = try #require(try server.deployment.store.value(of: .answerKey))
        try server.deployment.store.set(.answerKey, to: [1])
        server.deployment.generation.advance()
        #expect(signing.authority.key === key)
        try server.deployment.store.set(.answerKey, to: good)
    }

    @Test func aSignUpThatWasBegunBeforeARotationIsFinishedAfterIt() async throws {
        let server = try TestServer()
        let bob = try await TestClient(server, "bob").beginRegistration()
        let carol = try await TestClient(server, "carol").beginRegistration()
        try server.deployment.rotateRegistrationKey(at: server.clock.now)
        let begun = try await server.call("registration/finish", bob.body)
        #expect(begun["account"] == "bob")
        let dave = try TestClient(server, "dave")
        #expect(try await dave.signUp()["account"] == "dave")
        // The key and the handle expire together.
        server.clock.now += 600
        try server.accounts.runMaintenance(at: .at(server.clock.now))
        #expect(try await server.call("registration/finish", carol.body)["code"] == "malformed")
        let erin = try TestClient(server, "erin")
        #expect(try await erin.signUp()["account"] == "erin")
    }
}
