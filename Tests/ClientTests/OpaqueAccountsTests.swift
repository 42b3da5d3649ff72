import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient

/// Proves that a device's record of OPAQUE accounts is durable, contains no names, and reports "known" when
/// in doubt.
@Suite struct OpaqueAccountsTests {
    private let vault = MemoryVault()

    private func accounts() throws -> OpaqueAccounts {
        OpaqueAccounts(
            vault.vault,
            item: try OpaqueAccounts.item(beside: StateKeeper.item(host: "api.example.com", app: "demo")))
    }

    private func name(_ text: String) throws -> AccountName { try AccountName(normalizing: text) }

    @Test func anEntryOutlivesTheProcess() throws {
        #expect(try !accounts().contains(name("alice")))
        try accounts().insert(name("alice"))
        try accounts().insert(name("bob"))
        try accounts().insert(name("alice"))
        #expect(try accounts().contains(name("alice")) && accounts().contains(name("bob")))
        #expect(try !accounts().contains(name("carol")))
        #expect(vault.writes == 2, "what is there is not written again")
        let item = try #require(vault.contents.values.first)
        #expect(item.withExposedBytes { !$0.text.contains("alice") })
    }

    @Test func twoVaultsHaveTwoKeys() throws {
        try accounts().insert(name("alice"))
        let other = MemoryVault()
        let item = try OpaqueAccounts.item(beside: StateKeeper.item(host: "api.example.com", app: "demo"))
        try OpaqueAccounts(other.vault, item: item).insert(name("alice"))
        let digests = try [vault, other].map { vault in
            let kept = try #require(try vault.vault.read(item).get())
            return try #require(StateParts(kept.contents.secret)?.bytes(2))
        }
        #expect(digests[0].count == 16 && digests[0] != digests[1])
    }

    @Test func aFullOneKnowsEveryAccount() throws {
        for index in 0..<OpaqueAccounts.capacity { try accounts().insert(name("user\(index)")) }
        #expect(try accounts().contains(name("carol")))
        let writes = vault.writes
        try accounts().insert(name("carol"))
        #expect(vault.writes == writes, "and does not grow")
    }

    @Test func nothingIsConcludedFromWhatCannotBeRead() throws {
        try accounts().insert(name("alice"))
        vault.close(.locked("test"))
        #expect(throws: ClientOperationError.self) { try accounts().contains(name("carol")) }
        vault.close(nil)
        let item = try OpaqueAccounts.item(beside: StateKeeper.item(host: "api.example.com", app: "demo"))
        try vault.vault.write(.bytes(Secret(copying: [1, 2, 0, 0, 0, 1, 9].span)), to: item)
        #expect(throws: ClientOperationError.self) { try accounts().contains(name("carol")) }
        #expect(throws: ClientOperationError.self) { try accounts().insert(name("carol")) }
    }
}
