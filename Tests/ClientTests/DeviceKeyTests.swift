// The storage of a device's keys: in hardware if the policy prefers it and it works, in their own vault item.
// If the hardware has lost the keys, the session ends with a reason; if it is unavailable, the session
// continues.
import ClientFakes
import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient

@Suite struct DeviceKeyTests {
    private let hardware = FakeHardware()

    private func world(
        _ preference: DeviceKeyPolicy.Preference = .hardwareWhereThereIsOne, has hardware: FakeHardware?
    ) async throws -> FakeWorld {
        var world = try await FakeWorld()
        world.policy = DeviceKeyPolicy(preference, hardware: hardware)
        try world.restart()
        try await world.signUp()
        return world
    }

    private func expect(
        _ problem: (ClientOperationError) -> Bool, _ step: () async throws -> Void,
        _ place: SourceLocation = #_sourceLocation
    ) async {
        await #expect(sourceLocation: place) { try await step() } throws: { error in
            (error as? ClientOperationError).map(problem) ?? false
        }
    }

    private func isLost(_ problem: ClientOperationError) -> Bool {
        if case .deviceKeyLost = problem { true } else { false }
    }
    private func isUnavailable(_ problem: ClientOperationError) -> Bool {
        if case .deviceKeyUnavailable = problem { true } else { false }
    }

    private func isUnreadable(_ problem: ClientOperationError) -> Bool {
        if case .vaultFailed(let detail) = problem { detail.contains("cannot read") } else { false }
    }

    @Test func hardwareSignsAndAgrees() async throws {
        var world = try await world(has: hardware)
        try await world.logIn()
        #expect(try world.state.keys?.storage == .tpm)
        #expect(await world.authority.session?.device.keyStorage == nil, "the fake server repeats none")
        for _ in 0..<2 {
            await world.pass(FakeSession.lifetime)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
        }
        #expect(try await world.calls.send(world.draft("POST", "/pay")).response.status == 200)
        // The next process finds them again.
        try world.restart()
        let uses = hardware.uses
        await world.pass(FakeSession.lifetime)
        #expect(try await world.calls.send(world.draft("POST", "/pay")).response.status == 200)
        #expect(hardware.uses >= uses + 3)
        try await world.logIn()
        #expect(hardware.made == 2, "the device stays the same")
    }

    /// A copy of one item is useless without the other, and a copy of both is useless without the hardware.
    @Test(arguments: [true, false]) func theKeysAreNotInTheSessionsItem(_ hasHardware: Bool) async throws {
        let world = try await world(has: hasHardware ? hardware : nil)
        try await world.logIn()
        let state = try StateKeeper.item(host: world.installation.host, app: nil)
        let item = try world.keeper.deviceKeys.item
        #expect(item != state && Set(world.store.contents.keys) == [state, item])
        guard case .device(let session)? = try world.state.login?.session else {
            throw FakeAuthority.Problem.broken
        }
        let root = session.current.root.secret.withExposedBytes { span in span.indices.map { span[$0] } }
        let signing = try world.heldSigningKey().withExposedBytes { span in span.indices.map { span[$0] } }
        func has(_ name: ItemName, _ part: [UInt8]) throws -> Bool {
            let contents = try #require(world.store.contents[name])
            let bytes = contents.withExposedBytes { span in span.indices.map { span[$0] } }
            return bytes.indices.contains { bytes[$0...].starts(with: part) }
        }
        #expect(try has(state, root) && !has(item, root))
        #expect(try has(item, signing) && !has(state, signing))
    }

    @Test func hardwareThatWasClearedEndsTheSessionOnce() async throws {
        let world = try await world(has: hardware)
        let standing = Mutex<SessionStatus?>(nil)
        try await world.logIn()
        world.keeper.announce { now in standing.withLock { $0 = now } }
        hardware.clear()
        // With a valid token nothing needs the keys.
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        await world.pass(FakeSession.lifetime)
        let sent = await world.network.sent.count
        await expect(isLost) { _ = try await world.calls.send(world.draft()) }
        #expect(await world.network.sent.count <= sent + 1, "and no loop")
        #expect(try world.state.login == nil && world.state.ended?.reason == SessionEndRecord.deviceKeyLost)
        guard case .signedOut(let ending)? = standing.withLock({ $0 }) else {
            throw FakeAuthority.Problem.broken
        }
        #expect(ending?.reason == "device-key-lost" && ending?.at != nil)
        await expect({ if case .notSignedIn = $0 { true } else { false } }) {
            _ = try await world.calls.send(world.draft())
        }
        // A login makes new keys.
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        #expect(try await world.calls.send(world.draft("POST", "/pay")).response.status == 200)
        #expect(try world.state.keys?.storage == .tpm && hardware.made == 4)
    }

    @Test func aDeviceSignedRouteFindsTheLossToo() async throws {
        let world = try await world(has: hardware)
        try await world.logIn()
        hardware.clear()
        await expect(isLost) { _ = try await world.calls.send(world.draft("POST", "/pay")) }
        #expect(try world.state.login == nil)
    }

    /// The server has answered the refresh and the client cannot use the response: the client ends the
    /// session and does not retry for ever.
    @Test func aLossBetweenSignatureAndAgreementEndsTheSession() async throws {
        let world = try await world(has: hardware)
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        let keys = try #require(try world.state.keys)
        _ = try world.keeper.deviceKeys.signing(keys)
        var item = try world.deviceKeyItem()
        let entry = try #require(item[keys.name])
        item.add(
            DeviceKeyItem.Entry(
                name: entry.name, storage: entry.storage, signing: entry.signing,
                agreement: WrappedKey(point: entry.agreement.point, wrapped: Secret(random: 9))), sparing: nil
        )
        try world.store.vault.write(.bytes(item.contents), to: world.keeper.deviceKeys.item)
        await expect(isLost) { _ = try await world.calls.send(world.draft()) }
        #expect(try world.state.ended?.reason == SessionEndRecord.deviceKeyLost)
    }

    @Test func hardwareThatIsAwayEndsNothing() async throws {
        var world = try await world(has: hardware)
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        hardware.behave(.isAway)
        for _ in 0..<2 {
            let now = world
            await expect(isUnavailable) { _ = try await now.calls.send(now.draft()) }
        }
        #expect(try world.state.login != nil)
        // Nor does a start on a machine without such hardware end it.
        world.policy = DeviceKeyPolicy(.hardwareWhereThereIsOne, hardware: nil)
        try world.restart()
        let bare = world
        await expect(isUnavailable) { _ = try await bare.calls.send(bare.draft()) }
        #expect(try bare.state.login != nil)
        // When the hardware is available again, the session continues.
        hardware.behave(.works)
        world.policy = DeviceKeyPolicy(.hardwareWhereThereIsOne, hardware: hardware)
        try world.restart()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        // A login while the hardware is unavailable does without it.
        hardware.behave(.isAway)
        try await world.logIn()
        #expect(try world.state.keys?.storage == .software)
    }

    @Test func hardwareThatIsDemandedIsNotReplaced() async throws {
        for absent in [nil, hardware] {
            hardware.behave(.isBroken)
            let world = try await world(.hardwareOnly, has: absent)
            await expect(isUnavailable) { try await world.logIn() }
            #expect(try world.state.login == nil && world.state.keys == nil)
        }
        hardware.behave(.works)
        let world = try await world(.hardwareOnly, has: hardware)
        try await world.logIn()
        #expect(try world.state.keys?.storage == .tpm)
    }

    /// A session keeps its keys; the next login applies the present policy.
    @Test func anotherPreferenceCountsFromTheNextLogin() async throws {
        var world = try await world(.softwareOnly, has: hardware)
        try await world.logIn()
        let first = try #require(try world.state.keys)
        #expect(first.storage == .software)
        for (preference, storage) in [
            (DeviceKeyPolicy.Preference.hardwareWhereThereIsOne, KeyStorage.tpm), (.softwareOnly, .software),
        ] {
            world.policy = DeviceKeyPolicy(preference, hardware: hardware)
            try world.restart()
            await world.pass(FakeSession.lifetime)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
            try await world.logIn()
            #expect(try world.state.keys?.storage == storage)
            await world.pass(FakeSession.lifetime)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
        }
        // The first keys were kept, and are the device's keys again.
        #expect(try world.state.keys == first)
    }

    @Test func loginsThatFailMakeNoMoreKeys() async throws {
        let world = try await world(has: hardware)
        for _ in 0..<3 {
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) {
                try await world.logIn("alice", "wrong")
            }
        }
        try await world.logIn()
        #expect(hardware.made == 2)
    }

    /// Another process has signed in meanwhile: its keys stay even if logins of this process fail.
    @Test func loginsThatFailSpareTheKeysOfAnotherProcess() async throws {
        let world = try await world(has: hardware)
        #expect(try world.keeper.state().keys == nil)
        let box = Box()
        let other = try world.another()
        try await other.logIn(keepingSigningKey: .boundToPresence(box))
        let keys = try #require(try world.state.keys)
        for _ in 0..<DeviceKeyItem.mostEntries {
            await expect({ if case .wrongCredentials = $0 { true } else { false } }) {
                try await world.logIn("alice", "wrong", keepingSigningKey: .boundToPresence(Box()))
            }
        }
        #expect(try world.deviceKeyItem()[keys.name] != nil)
        var present = try world.another()
        await present.pass(FakeSession.lifetime)
        present.signer = try present.environment.open(#require(box.key(keys.name)), of: keys)
        #expect(try await present.calls.send(present.draft()).response.status == 200)
    }

    /// For example the item of a later version, whose keys are used again once the app is updated.
    @Test func anItemThatCannotBeReadIsNotReplaced() async throws {
        var world = try await world(has: hardware)
        try await world.logIn()
        let item = try world.keeper.deviceKeys.item
        let later: [UInt8] = [2, 1, 2, 3]
        try world.store.vault.write(.bytes(Secret(copying: later.span)), to: item)
        try world.restart()
        await world.pass(FakeSession.lifetime)
        let now = world
        await expect(isUnreadable) { try await now.logIn() }
        await expect(isUnreadable) { try await now.logIn(keepingSigningKey: .boundToPresence(Box())) }
        await expect(isUnreadable) { _ = try await now.calls.send(now.draft()) }
        let found = try #require(try world.store.vault.read(item).get()).contents.secret
        #expect(found.withExposedBytes { span in span.indices.map { span[$0] } } == later)
        #expect(try world.state.login != nil)
    }

    /// With presence binding, the presence provider holds the wrapped key.
    @Test func presenceHoldsWhatTheHardwareWrapped() async throws {
        let box = Box()
        var world = try await world(has: hardware)
        try await world.logIn(keepingSigningKey: .boundToPresence(box))
        let keys = try #require(try world.state.keys)
        #expect(keys.isBoundToPresence && keys.storage == .tpm)
        let wrapped = try #require(box.key(keys.name))
        #expect(wrapped.withExposedBytes { bytes in bytes.count } == 73)
        #expect(try world.deviceKeyItem()[keys.name]?.signing == nil)
        await world.pass(FakeSession.lifetime)
        world.signer = try world.environment.open(wrapped, of: keys)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        hardware.clear()
        await world.pass(FakeSession.lifetime)
        let present = world
        await expect(isLost) { _ = try await present.calls.send(present.draft()) }
        #expect(try world.state.login == nil)
    }

    @Test func theItemIsBoundedAndKeepsTheKeysInUse() throws {
        var item = DeviceKeyItem()
        var names: [String] = []
        for _ in 0..<9 {
            let (signing, agreement) = (
                try SoftwareKeys().makeKey(for: .signing), try SoftwareKeys().makeKey(for: .agreement)
            )
            let keys = DeviceKeys(
                signingPoint: signing.point, agreementPoint: agreement.point, storage: .software,
                isBoundToPresence: false)
            names.append(keys.name)
            item.add(
                DeviceKeyItem.Entry(
                    name: keys.name, storage: .software, signing: signing, agreement: agreement),
                sparing: names[0])
        }
        #expect(item.entries.map(\.name) == [names[0]] + names[6...])
        let again = try #require(DeviceKeyItem(item.contents))
        #expect(again.entries.map(\.name) == item.entries.map(\.name))
        let whole = item.contents
        for count in stride(from: 0, to: whole.count, by: 7) {
            let short = DeviceKeyItem(whole.part(0..<count))
            #expect(short == nil || (short?.entries.count ?? 9) < 4)
        }
    }
}
