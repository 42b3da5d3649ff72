// A device's state as versions before 0045 kept it, with the device's keys beside the session's root, is
// read, and the keys move to their own item: at the first read, despite failures in between, and again if
// such a version was reinstalled.
import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient

@Suite struct EarlierStateTests {
    /// Written by such a version: app `shop`, clock 7 s ahead, alice on `old phone` in session `AAAA…` at
    /// epoch 3, whose root is 32 times 9. The keys are of no other use.
    private static let name = "ee30fe38f858414c5927668443b59584"
    private static let held =
        "01010000000473686f7002000000080000000000000007030000008a308187020100301306072a8648ce3d0201"
        + "06082a8648ce3d030107046d306b0201010420226f0cfd5cf5cd2345059e996649bee941c0621e4da8912f65bc"
        + "4e83493f28bfa144034200049252215803bdf68a684a997aff875c31375923480cade70c9f3280ef005d822498"
        + "6eb7340b34c764ae4d5ad96e8d2e8f968ff499f824d405210950ed4daaa5bc040000008a308187020100301306"
        + "072a8648ce3d020106082a8648ce3d030107046d306b0201010420b3f8ca858fc06d89c7f1e0bda7dfffce929c"
        + "91a23b95e801523edaeb0db55bdda144034200043f7e9a3ac09ae60fb380c8529f64e33be5c94824ae583b3c15"
        + "343e35d96c3d1c61a38f690237a637f716200886f62c69739522296a5cb0d6c79390d96cfebbad0a0000000561"
        + "6c6963650b0000000570686f6e650c000000096f6c642070686f6e650d0000000673696e676c650e0000001041"
        + "4141414141414141414141414141410f0000000800000000000007d01400000008000000000000000315000000"
        + "200909090909090909090909090909090909090909090909090909090909090909160000000800000000000003" + "e8"
    /// The same with the signing key bound to presence.
    private static let bound =
        "01010000000473686f7002000000080000000000000007040000008a308187020100301306072a8648ce3d0201"
        + "06082a8648ce3d030107046d306b0201010420b3f8ca858fc06d89c7f1e0bda7dfffce929c91a23b95e801523e"
        + "daeb0db55bdda144034200043f7e9a3ac09ae60fb380c8529f64e33be5c94824ae583b3c15343e35d96c3d1c61"
        + "a38f690237a637f716200886f62c69739522296a5cb0d6c79390d96cfebbad0800000041049252215803bdf68a"
        + "684a997aff875c31375923480cade70c9f3280ef005d8224986eb7340b34c764ae4d5ad96e8d2e8f968ff499f8"
        + "24d405210950ed4daaa5bc0a00000005616c6963650b0000000570686f6e650c000000096f6c642070686f6e65"
        + "0d0000000673696e676c650e00000010414141414141414141414141414141410f0000000800000000000007d0"
        + "140000000800000000000000031500000020090909090909090909090909090909090909090909090909090909"
        + "0909090909160000000800000000000003e8"

    private func store(_ text: String, in store: MemoryVault = MemoryVault()) throws -> (
        MemoryVault, StateKeeper
    ) {
        let name = try StateKeeper.item(host: "api.example.com", app: "shop")
        let bytes = try #require(Hex.decode(text))
        try store.vault.write(.bytes(Secret(copying: bytes.span)), to: name)
        return (store, StateKeeper(store.vault, item: name))
    }

    /// The bytes of an item; empty if it does not exist.
    private func bytes(_ name: ItemName, _ store: MemoryVault) throws -> [UInt8] {
        let item = try store.vault.read(name).get()
        return item?.contents.secret.withExposedBytes { span in span.indices.map { span[$0] } } ?? []
    }

    private func has(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: part) }
    }

    private let root = [UInt8](repeating: 9, count: SessionRoot.count)

    @Test func theKeysMoveToAnItemOfTheirOwn() throws {
        let (store, keeper) = try store(Self.held)
        let state = try keeper.readVault()
        #expect(state.login?.account.description == "alice" && state.app == "shop" && state.clockOffset == 7)
        let keys = try #require(state.keys)
        #expect(keys.name == Self.name && keys.storage == .software && !keys.isBoundToPresence)
        let stateName = try StateKeeper.item(host: "api.example.com", app: "shop")
        let entry = try #require(try item(keeper, store)[keys.name])
        // The root stays and the keys are gone, so that they are in separate items.
        #expect(try has(bytes(stateName, store), root))
        #expect(try !has(bytes(keeper.deviceKeys.item, store), root))
        for wrapped in [try #require(entry.signing).wrapped, entry.agreement.wrapped] {
            let number = wrapped.withExposedBytes { bytes in (36..<68).map { bytes[$0] } }
            #expect(try !has(bytes(stateName, store), number))
            #expect(try has(bytes(keeper.deviceKeys.item, store), number))
        }
        // The next start finds the new form and the same keys.
        let next = StateKeeper(store.vault, item: stateName)
        let writes = store.writes
        #expect(try next.readVault().keys == keys && store.writes == writes)
        let signature = try DeviceSigningKey(next.deviceKeys.signing(keys)).sign([1, 2, 3])
        #expect(keys.signingPoint.verify(signature.span, of: [UInt8]([1, 2, 3]).span) == .equal)
        #expect(try next.deviceKeys.agreement(keys).point == keys.agreementPoint)
    }

    @Test func aKeyThatPresenceHoldsStaysThere() throws {
        let (store, keeper) = try store(Self.bound)
        let keys = try #require(try keeper.readVault().keys)
        #expect(keys.isBoundToPresence && keys.name == Self.name)
        let entry = try #require(try item(keeper, store)[keys.name])
        #expect(entry.signing == nil)
        #expect(try keeper.deviceKeys.agreement(keys).point == keys.agreementPoint)
    }

    /// After a full disk or the process's end at any write, the session continues, and the keys move later.
    @Test(arguments: 0...2) func nothingIsLostOnTheWay(_ writes: Int) throws {
        let (store, keeper) = try store(Self.held)
        store.failAfter(writes: writes)
        let keys = try #require(try keeper.readVault().keys)
        _ = try DeviceSigningKey(keeper.deviceKeys.signing(keys)).sign([1])
        _ = try keeper.deviceKeys.agreement(keys)
        store.failAfter(writes: .max)
        let next = StateKeeper(store.vault, item: try StateKeeper.item(host: "api.example.com", app: "shop"))
        #expect(try next.readVault().keys == keys)
        _ = try DeviceSigningKey(next.deviceKeys.signing(keys)).sign([1])
        #expect(try item(next, store)[keys.name] != nil)
        // And where it is this process that writes next.
        try keeper.change { state in
            state.clockOffset += 1
            return .write(())
        }
        let name = try StateKeeper.item(host: "api.example.com", app: "shop")
        let kept = try #require(
            try store.vault.read(name).get().flatMap { StateParts($0.contents.secret) })
        #expect(kept[3] == nil && kept[4] == nil)
        #expect(try next.readVault().keys == keys)
    }

    /// The earlier version does not know the new item, and stores its keys in the state again; these belong
    /// to the session.
    @Test func anEarlierVersionThatWasPutBackWroteLast() throws {
        let (store, keeper) = try store(Self.held)
        _ = try keeper.readVault()
        let name = try StateKeeper.item(host: "api.example.com", app: "shop")
        let now = try #require(try store.vault.read(name).get())
        var parts = try #require(StateParts(now.contents.secret))
        let (signing, agreement) = (
            try SoftwareKeys().makeKey(for: .signing), try SoftwareKeys().makeKey(for: .agreement)
        )
        parts[3] = signing.wrapped
        parts[4] = agreement.wrapped
        try store.vault.write(.bytes(parts.contents), to: name)
        let keys = try #require(try keeper.readVault().keys)
        #expect(keys.signingPoint == signing.point && keys.agreementPoint == agreement.point)
        let kept = try #require(
            try store.vault.read(name).get().flatMap { StateParts($0.contents.secret) })
        #expect(kept[3] == nil && kept[4] == nil)
        #expect(try item(keeper, store)[keys.name]?.signing?.point == signing.point)
    }

    private func item(_ keeper: StateKeeper, _ store: MemoryVault) throws -> DeviceKeyItem {
        let item = try #require(try store.vault.read(keeper.deviceKeys.item).get())
        return try #require(DeviceKeyItem(item.contents.secret))
    }
}
