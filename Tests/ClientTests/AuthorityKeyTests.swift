// Proves that a client with the authority's next key goes on after a rotation, accepts the former key no
// longer from the first answer under the next one on, also in a later process, and that one without the next
// key refuses every answer.

import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

import struct CountersignTransport.TransportError

@testable import CountersignClient

@Suite struct AuthorityKeyTests {
    private func world(knowsNext: Bool = true) async throws -> FakeWorld {
        var world = try await FakeWorld()
        if knowsNext {
            world.installation.nextAuthorityKey = SigningKey(world.authority.nextAnswerKey.publicKey)
        }
        return world
    }

    /// The detail of the refusal to believe an answer; nil if it was believed.
    private func refusal(_ body: () async throws -> Void) async throws -> String? {
        do {
            try await body()
            return nil
        } catch ClientOperationError.notGenuine(let detail) {
            return detail
        }
    }

    private func askTime(_ world: FakeWorld) async throws {
        _ = try await TimeRequest(world.installation, environment: world.environment)()
    }

    @Test func whoKnowsTheNextKeyGoesOn() async throws {
        let world = try await world()
        try await world.signUp()
        #expect(try world.state.authorityKeyInUse == nil)
        await world.authority.signWithNextKey(true)
        try await world.logIn()
        try await askTime(world)
        #expect(try world.state.authorityKeyInUse == world.authority.nextAnswerKey.publicKey.der)
    }

    @Test func whoDoesNotKnowItRefuses() async throws {
        let world = try await world(knowsNext: false)
        try await world.signUp()
        await world.authority.signWithNextKey(true)
        let detail = try #require(try await refusal { try await world.logIn() })
        #expect(detail.contains("or the server rotated it since") && detail.contains("`next_authority_key`"))
        #expect(try world.state.login == nil)
    }

    /// The former key may have leaked: a party with it must not be believed by a client that has seen the
    /// next one.
    @Test func theFormerKeyIsRefusedOnceTheNextWasSeen() async throws {
        var world = try await world()
        try await world.signUp()
        await world.authority.signWithNextKey(true)
        try await world.logIn()
        await world.authority.signWithNextKey(false)
        let device = world
        let detail = try #require(try await refusal { try await askTime(device) })
        #expect(detail.contains("accepts the former one no longer"))
        // The session's answers have keys of their own.
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        try world.restart()
        let later = world
        #expect(try await refusal { try await later.logIn() } != nil)
        #expect(try await refusal { try await askTime(later) } != nil)
        await world.authority.signWithNextKey(true)
        try await later.logIn()
    }

    @Test func anUpdateOfTheAppGoesOnFromThere() async throws {
        var world = try await world()
        try await world.signUp()
        await world.authority.signWithNextKey(true)
        try await world.logIn()
        // The update is built with the key in use and a newer one, which is not in use yet.
        let newer = try PrivateKey(random: .ed25519)
        world.installation.authorityKey = SigningKey(world.authority.nextAnswerKey.publicKey)
        world.installation.nextAuthorityKey = SigningKey(newer.publicKey)
        try await askTime(world)
        await world.authority.signWithNextKey(false)
        let updated = world
        #expect(try await refusal { try await askTime(updated) } != nil)
    }

    /// An answer may be under way while another under the next key arrives.
    @Test func anAnswerUnderTheFormerKeyToAnEarlierRequestIsBelieved() async throws {
        let world = try await world()
        try await world.signUp()
        await world.authority.signWithNextKey(true)
        let nested = Nested(world)
        var device = world
        device.transport = nested
        try await askTime(device)
        #expect(try world.state.authorityKeyInUse != nil)
        await world.authority.signWithNextKey(false)
        let afterwards = device
        #expect(try await refusal { try await askTime(afterwards) } != nil)
    }

    /// Lets another request of the same client be sent and answered under the next key, before the first one
    /// is answered under the former.
    private struct Nested: Transport {
        let world: FakeWorld
        let network: FakeTransport

        init(_ world: FakeWorld) {
            self.world = world
            network = FakeTransport(network: world.network)
        }

        func send(_ draft: Draft) async throws(TransportError) -> Response {
            if (try? world.keeper.state().authorityKeyInUse) == .some(nil) {
                _ = try? await TimeRequest(world.installation, environment: world.environment)()
                await world.authority.signWithNextKey(false)
            }
            return try await network.send(draft)
        }
    }

    @Test("without the state it is not known which key is accepted; a client without a next key needs none")
    func unreadableState() throws {
        let store = MemoryVault()
        let name = try StateKeeper.item(host: "api.example.com", app: nil)
        try store.vault.write(.bytes(Secret(random: 3)), to: name)
        let keeper = StateKeeper(store.vault, item: name)
        let key = SigningKey(try PrivateKey(random: .ed25519).publicKey)
        #expect(try keeper.accepted(of: AuthorityKeys(current: key)).current === key)
        #expect(throws: ClientOperationError.self) {
            try keeper.accepted(of: AuthorityKeys(current: key, next: key))
        }
    }
}
