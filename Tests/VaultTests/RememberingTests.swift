import CountersignSeal
import Synchronization
import Testing

@testable import CountersignVault

@Suite struct RememberingTests {
    /// Keeps everything, and removes nothing for as long as it is told so.
    private final class Clinging: ItemStore {
        let store = MemoryStore()
        let clings = Mutex(true)

        func find(_ name: ItemName) -> VaultReadResult<Secret> { store.find(name) }
        func names() throws(VaultError) -> [ItemName] { try store.names() }
        func put(_ bytes: Secret, at name: ItemName) throws(VaultError) { try store.put(bytes, at: name) }
        func remove(_ name: ItemName) throws(VaultError) {
            if clings.withLock({ $0 }) { throw .failed("test") }
            try store.remove(name)
        }
    }

    @Test func whatCouldNotBeRemovedIsNotSaidToBeGone() throws {
        try withFolder { folder in
            let (name, disk) = (try item("session"), Clinging())
            let vault = SwitchableVault(
                over: Vault(disk, locks: VaultLocks(folder: folder)), persistence: .outlivesTheProcess)
            try vault.vault.write(.text("alice"), to: name)
            for _ in 0..<2 {
                #expect(
                    ending { () throws(VaultError) in try vault.move([name], to: .endsWithTheProcess) }
                        == "failed")
                #expect(kind(disk.find(name)) == "value")
            }
            disk.clings.withLock { $0 = false }
            try vault.move([name], to: .endsWithTheProcess)
            #expect(kind(disk.find(name)) == "absent")
            #expect(kind(vault.vault.read(name)) == "value", "this process goes on")
        }
    }

    @Test func whatIsToOutliveTheProcessIsWhereTheNextOneLooks() throws {
        try withFolder { folder in
            let (name, disk) = (try item("session"), MemoryStore())
            let vault = SwitchableVault(
                over: Vault(disk, locks: VaultLocks(folder: folder)), persistence: .endsWithTheProcess)
            let version = try vault.vault.write(.text("alice"), to: name)
            #expect(kind(disk.find(name)) == "absent")
            for _ in 0..<2 {
                try vault.move([name], to: .outlivesTheProcess)
                #expect(try vault.vault.read(name).get()?.version == version)
                #expect(kind(disk.find(name)) == "value")
            }
        }
    }
}
