import ClientFakes
import CountersignSeal
import CountersignVault
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient

/// A device whose signing key requires user presence.
@Suite struct PresenceTests {
    private func signedIn(_ box: Box) async throws -> FakeWorld {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn(keepingSigningKey: .boundToPresence(box))
        return world
    }

    private func expectPresenceNeeded(_ step: () async throws -> Void) async {
        await #expect { try await step() } throws: { error in
            guard case ClientOperationError.presenceNeeded = error else { return false }
            return true
        }
    }

    @Test func theKeyIsNowhereElse() async throws {
        let box = Box()
        let world = try await signedIn(box)
        let keys = try #require(try world.state.keys)
        let key = try #require(box.key(keys.name))
        #expect(keys.isBoundToPresence)
        // The private number of a PKCS #8 P-256 key: 32 bytes after its head.
        let number = key.withExposedBytes { bytes in (36..<68).map { bytes[$0] } }
        for contents in world.store.contents.values {
            let bytes = contents.withExposedBytes { span in span.indices.map { span[$0] } }
            #expect(!bytes.indices.contains { bytes[$0...].starts(with: number) })
        }
        // The same look finds it where it is kept in the vault.
        let plain = try await FakeWorld()
        try await plain.signUp()
        try await plain.logIn()
        let kept = try plain.heldSigningKey()
        let held = kept.withExposedBytes { bytes in (36..<68).map { bytes[$0] } }
        #expect(
            plain.store.contents.values.contains { contents in
                let bytes = contents.withExposedBytes { span in span.indices.map { span[$0] } }
                return bytes.indices.contains { bytes[$0...].starts(with: held) }
            })
    }

    @Test func aLiveTokenNeedsNobodyAndARefreshSomebody() async throws {
        let box = Box()
        let world = try await signedIn(box)
        #expect(try await world.calls.send(world.draft("POST")).response.status == 200)
        await world.pass(FakeSession.lifetime)
        let standing = Mutex<SessionStatus?>(nil)
        world.keeper.announce { now in standing.withLock { $0 = now } }
        let writes = world.store.writes
        await expectPresenceNeeded { _ = try await world.calls.send(world.draft()) }
        #expect(world.store.writes == writes)
        #expect(await world.authority.refreshes == 0)
        #expect(standing.withLock { $0 } == .locked(.presence))
        let present = try world.present(box)
        #expect(try await present.calls.send(present.draft()).response.status == 200)
        #expect(await world.authority.refreshes == 1)
        guard case .active? = standing.withLock({ $0 }) else { throw FakeAuthority.Problem.broken }
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    @Test func anAttemptThatWasBegunGoesOnOnceSomebodyIsThere() async throws {
        let box = Box()
        var world = try await signedIn(box)
        await world.pass(FakeSession.lifetime)
        for _ in 0..<2 { await world.network.plan(.lost, at: "/token") }
        let present = try world.present(box)
        await #expect(throws: ClientOperationError.self) { try await present.calls.send(present.draft()) }
        #expect(await world.network.done == 2)
        func attempt() throws -> [UInt8]? {
            guard case .device(let session)? = try world.state.login?.session else { return nil }
            return session.attempt
        }
        let begun = try #require(try attempt())
        try world.restart()
        let alone = world
        await expectPresenceNeeded { _ = try await alone.calls.send(alone.draft()) }
        #expect(try attempt() == begun)
        let again = try world.present(box)
        #expect(try await again.calls.send(again.draft()).response.status == 200)
        #expect(await world.authority.session?.ended == nil)
        #expect(await world.authority.session?.epoch == 1)
    }

    @Test func aDeviceSignedRouteNeedsSomebody() async throws {
        let box = Box()
        let world = try await signedIn(box)
        await expectPresenceNeeded { _ = try await world.calls.send(world.draft("POST", "/pay")) }
        #expect(await world.authority.done.isEmpty)
        let present = try world.present(box)
        let before = await world.network.sent.count
        #expect(try await present.calls.send(present.draft("POST", "/pay")).response.status == 200)
        // Signed at once, and not only after a refusal.
        #expect(await world.network.sent.count == before + 1)
        // A key in the vault signs on request.
        let plain = try await FakeWorld()
        try await plain.signUp()
        try await plain.logIn()
        #expect(try await plain.calls.send(plain.draft("POST", "/pay")).response.status == 200)
        #expect(await plain.network.sent.suffix(2).map(\.target) == [Array("/pay".utf8), Array("/pay".utf8)])
    }

    @Test func anotherKeyIsNobody() async throws {
        let world = try await signedIn(Box())
        let stranger = Box()
        _ = try await signedIn(stranger)
        await world.pass(FakeSession.lifetime)
        var deceived = world
        deceived.signer = try stranger.keys.first.map { DeviceSigningKey(try SoftwareKeys().signingKey($0)) }
        #expect(deceived.signer != nil)
        let calls = deceived.calls
        await expectPresenceNeeded { _ = try await calls.send(world.draft()) }
    }

    @Test func whereNobodyShowsHimselfNobodySignsIn() async throws {
        let box = Box()
        let world = try await signedIn(box)
        let before = try #require(try world.state.login?.id)
        box.isShut.withLock { $0 = true }
        await expectPresenceNeeded { try await world.logIn(keepingSigningKey: .boundToPresence(box)) }
        // The existing session continues at both ends.
        #expect(try world.state.login?.id == before)
        #expect(await world.authority.session?.id == before)
        await world.pass(FakeSession.lifetime)
        let present = try world.present(box)
        #expect(try await present.calls.send(present.draft()).response.status == 200)
    }

    @Test func aPasswordIsChangedWithSomebodyPresent() async throws {
        let world = try await signedIn(Box())
        let before = await world.network.sent.count
        await expectPresenceNeeded {
            try await PasswordChange(world.installation, environment: world.environment)(
                from: FakeWorld.password("correct horse"), to: FakeWorld.password("another"))
        }
        #expect(await world.network.sent.count == before)
    }

    /// The device stays known to the authority if its key is available; otherwise it counts as a new device.
    @Test func theKeyIsTakenOverWhereItIsKeptAsIsWished() async throws {
        let box = Box()
        let world = try await signedIn(box)
        let first = try #require(try world.state.keys?.name)
        let present = try world.present(box)
        try await present.logIn(keepingSigningKey: .boundToPresence(box))
        #expect(try world.state.keys?.name == first)
        try await world.logIn(keepingSigningKey: .boundToPresence(box))
        let second = try #require(try world.state.keys?.name)
        #expect(second != first)
        try await world.logIn()
        #expect(try world.state.keys?.isBoundToPresence == false)
        #expect(try world.state.keys?.name != second)
        await world.pass(FakeSession.lifetime)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }
}

/// An in-memory presence binding.
final class Box: DeviceKeyBinder {
    private let kept = Mutex<[String: Secret]>([:])
    let isShut = Mutex(false)

    var keys: [Secret] { kept.withLock { Array($0.values) } }

    func key(_ name: String) -> Secret? { kept.withLock { $0[name] } }

    func bind(_ key: Secret, named name: String) async throws(ClientOperationError) {
        guard !isShut.withLock({ $0 }) else { throw .presenceNeeded }
        kept.withLock { $0[name] = key }
    }
}

extension FakeWorld {
    /// A world in which the user is present.
    fileprivate func present(_ box: Box) throws -> FakeWorld {
        var world = self
        guard let name = try state.keys?.name, let key = box.key(name) else {
            throw FakeAuthority.Problem.broken
        }
        world.signer = DeviceSigningKey(try SoftwareKeys().signingKey(key))
        return world
    }
}
