import CountersignSeal
import Testing
import VaultContract

@testable import CountersignVault

/// The back ends that need nothing of the machine; the others keep the same contract in Tests/Interop.
@Suite struct ContractTests {
    @Test(arguments: ["memory", "keychain", "file"]) func theContract(_ kind: String) throws {
        try withFolder { folder throws in
            let (memory, keychain) = (MemoryStore(), KeychainStore(MemoryKeychain()))
            let open: () -> Vault = {
                let store: any ItemStore =
                    switch kind {
                    case "memory": memory
                    case "keychain": keychain
                    default: SealedFile("\(folder)/items", guardedBy: cheap("right"))
                    }
                return Vault(store, locks: VaultLocks(folder: folder))
            }
            let results = VaultContract(open(), reopen: open).run()
            #expect(results.count >= 9)
            for result in results { #expect(result.wrong == "", "\(result.rule)") }
        }
    }

    /// The contract finds a store that breaks it.
    @Test func aStoreThatForgetsBreaksTheContract() throws {
        struct Forgetful: ItemStore {
            func find(_ name: ItemName) -> VaultReadResult<Secret> { .absent }
            func names() throws(VaultError) -> [ItemName] { [] }
            func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {}
            func remove(_ name: ItemName) throws(VaultError) {}
        }
        try withFolder { folder throws in
            let vault = Vault(Forgetful(), locks: VaultLocks(folder: folder))
            let broken = VaultContract(vault, reopen: { vault }).run().filter { !$0.wrong.isEmpty }
            #expect(broken.count >= 6)
        }
    }

    @Test(arguments: [MemoryStore.State.locked, .failing]) func nothingIsConcludedWhileItCannotBeTold(
        _ state: MemoryStore.State
    ) throws {
        try withFolder { folder throws in
            let store = MemoryStore()
            let vault = Vault(store, locks: VaultLocks(folder: folder))
            let version = try vault.write(.text(secret("held")), to: item("a"))
            store.become(state)
            let expected = state == .locked ? "locked" : "failed"
            #expect(try kind(vault.read(item("a"))) == expected)
            let name = try item("a")
            #expect(ending { () throws(VaultError) in try vault.list() } == expected)
            #expect(
                ending { () throws(VaultError) in try vault.erase(name, expecting: .version(version)) }
                    == expected)
            #expect(
                ending { () throws(VaultError) in
                    try vault.write(.text(secret("x")), to: name, expecting: .absent)
                } == expected)
            store.become(.open)
            #expect(try text(vault.read(item("a")).get()?.contents.secret) == "held")
        }
    }
}
