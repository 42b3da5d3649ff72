import CountersignSeal
import Synchronization
import Testing

@testable import CountersignVault

/// What an older version left, and what was erased of it, in order.
private final class MemoryRemains: RememberedCredentialSource {
    private let remains: Mutex<[RememberedCredential]>
    let erased = Mutex<[String]>([])
    private let failing = Mutex<String?>(nil)

    init(_ remains: [RememberedCredential]) { self.remains = Mutex(remains) }

    func fail(at key: String?) { failing.withLock { $0 = key } }

    func read() -> VaultReadResult<[RememberedCredential]> {
        remains.withLock { $0.isEmpty ? .absent : .value($0) }
    }

    func erase(_ remain: RememberedCredential) throws(VaultError) {
        if failing.withLock({ $0 == remain.key }) { throw .failed("test") }
        remains.withLock { $0.removeAll { $0.key == remain.key } }
        erased.withLock { $0.append(remain.key) }
    }
}

@Suite struct MigrationTests {
    private func withVault(_ body: (Vault, MemoryStore) throws -> Void) throws {
        try withFolder { folder throws in
            let store = MemoryStore()
            try body(Vault(store, locks: VaultLocks(folder: folder)), store)
        }
    }

    private func held(_ vault: Vault, _ account: String, _ service: String = "app") throws -> String? {
        try text(vault.read(item(account, service)).get()?.contents.secret)
    }

    private let all = LegacyDefaultsItems(userName: "anna", remembers: .on, password: secret("cGFzcw=="))

    @Test(arguments: [(LegacyDefaultsItems.PasswordEncoding.plain, "cGFzcw=="), (.base64, "pass")])
    func whatDefaultsHeldIsMovedAndErased(
        _ spelling: LegacyDefaultsItems.PasswordEncoding, _ password: String
    ) throws {
        try withVault { vault, _ throws in
            let source = MemoryRemains(try all.credentials(encodedAs: spelling, service: "app"))
            let report = try VaultMigration(from: source, into: vault).migrateAll()
            #expect(try held(vault, "anna") == password)
            #expect(try held(vault, "user-name", "app.settings") == "anna")
            #expect(try held(vault, "remember-password", "app.settings") == "on")
            #expect(report.moved.count == 3 && report.left.isEmpty)
            // The name is erased last: without it the password's account is unknown.
            #expect(source.erased.withLock { $0 } == ["userPwdKey", "isSavePwdKey", "userNameKey"])
            #expect(try VaultMigration(from: source, into: vault).migrateAll() == VaultMigration.Report())
        }
    }

    @Test func whatCannotBeMovedIsLeftAndSaid() throws {
        let table:
            [(
                LegacyDefaultsItems, LegacyDefaultsItems.PasswordEncoding, left: [String],
                discarded: [String]
            )] =
                [
                    (LegacyDefaultsItems(password: secret("x")), .plain, ["userPwdKey"], []),
                    (
                        LegacyDefaultsItems(userName: "anna", password: secret("no base64!")), .base64,
                        ["userPwdKey"], []
                    ),
                    (
                        LegacyDefaultsItems(userName: "a\nb", password: secret("x")), .plain, ["userPwdKey"],
                        []
                    ),
                    (
                        LegacyDefaultsItems(userName: "anna", remembers: .off, password: secret("x")), .plain,
                        [], ["userPwdKey"]
                    ),
                ]
        for (remains, spelling, left, discarded) in table {
            try withVault { vault, _ throws in
                let source = MemoryRemains(try remains.credentials(encodedAs: spelling, service: "app"))
                let report = try VaultMigration(from: source, into: vault).migrateAll()
                #expect(report.left.keys.sorted() == left && report.discarded == discarded)
                #expect(try held(vault, "anna") == nil)
                #expect(source.erased.withLock { $0.contains("userPwdKey") } == !discarded.isEmpty)
            }
        }
    }

    @Test(arguments: [MemoryStore.State.locked, .failing]) func nothingIsErasedThatTheVaultDoesNotHave(
        _ state: MemoryStore.State
    ) throws {
        try withVault { vault, store throws in
            let source = MemoryRemains(try all.credentials(encodedAs: .plain, service: "app"))
            store.become(state)
            #expect(try VaultMigration(from: source, into: vault).migrateAll().left.count == 3)
            #expect(source.erased.withLock { $0.isEmpty })
            store.become(.open)
            #expect(try VaultMigration(from: source, into: vault).migrateAll().moved.count == 3)
        }
    }

    /// A store that says that it kept something, and did not: the old copy is the only one.
    @Test func aVaultThatLosesWhatItTookCostsNothing() throws {
        struct Forgetful: ItemStore {
            func find(_ name: ItemName) -> VaultReadResult<Secret> { .absent }
            func names() throws(VaultError) -> [ItemName] { [] }
            func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {}
            func remove(_ name: ItemName) throws(VaultError) {}
        }
        try withFolder { folder throws in
            let source = MemoryRemains(try all.credentials(encodedAs: .plain, service: "app"))
            let vault = Vault(Forgetful(), locks: VaultLocks(folder: folder))
            #expect(try VaultMigration(from: source, into: vault).migrateAll().left.count == 3)
            #expect(source.erased.withLock { $0.isEmpty })
        }
    }

    @Test(arguments: ["userPwdKey", "isSavePwdKey", "userNameKey"]) func oneThatStopsHalfwayGoesOn(
        _ key: String
    ) throws {
        try withVault { vault, _ throws in
            let source = MemoryRemains(try all.credentials(encodedAs: .plain, service: "app"))
            source.fail(at: key)
            let first = try VaultMigration(from: source, into: vault).migrateAll()
            #expect(Array(first.left.keys) == [key])
            // Meanwhile the user changed the password: the vault has the newer one.
            try vault.write(.text(secret("newer")), to: item("anna", "app"))
            source.fail(at: nil)
            #expect(try VaultMigration(from: source, into: vault).migrateAll().superseded.count == 1)
            #expect(try held(vault, "anna") == "newer")
            #expect(kind(source.read()) == "absent")
        }
    }

    @Test func anotherLibrarysKeychainItemsAreMoved() throws {
        try withVault { vault, _ throws in
            let keychain = MemoryKeychain()
            #expect(try keychain.add(secret("päss"), at: item("anna", "old")) == 0)
            #expect(
                try keychain.add(Secret(copying: ([0xFF, 0] as [UInt8]).span), at: item("bytes", "old")) == 0)
            #expect(try keychain.add(secret("not ours"), at: item("anna", "another")) == 0)
            let source = try LegacyKeychainItems(
                keychain, service: "old", to: "new")
            keychain.answer(-25_308)
            #expect(
                ending { () throws(VaultError) in try VaultMigration(from: source, into: vault).migrateAll() }
                    == "locked")
            keychain.answer(0)
            #expect(try VaultMigration(from: source, into: vault).migrateAll().moved.count == 2)
            #expect(try held(vault, "anna", "new") == "päss")
            #expect(try vault.read(item("bytes", "new")).get()?.contents.kind == .bytes)
            #expect(keychain.list().names.map(\.service) == ["another"])
            #expect(
                ending { () throws(VaultError) in
                    try LegacyKeychainItems(keychain, service: "same", to: "same")
                } == "bad name")
        }
    }
}
