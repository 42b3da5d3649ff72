import CountersignSeal
import Synchronization
import Testing

@testable import CountersignVault

/// A mark in memory, with the states that a file can be in.
private final class MemoryMark: InstallationMark {
    private let mark = Mutex<VaultReadResult<[UInt8]>>(.absent)

    func become(_ next: VaultReadResult<[UInt8]>) { mark.withLock { $0 = next } }
    func read() -> VaultReadResult<[UInt8]> { mark.withLock { $0 } }
    func write(_ bytes: [UInt8]) throws(VaultError) { become(.value(bytes)) }
}

private func accounts(_ vault: Vault, _ service: String) throws(VaultError) -> [String] {
    try vault.list().filter { $0.service == service }.map(\.account)
}

@Suite struct ReinstallationTests {
    private func withVault(
        _ rule: ReinstallRule, _ body: (Vault, MemoryStore, MemoryMark, Reinstallation) throws -> Void
    ) throws {
        try withFolder { folder throws in
            let (store, mark) = (MemoryStore(), MemoryMark())
            let vault = Vault(store, locks: VaultLocks(folder: folder))
            let installation = Reinstallation(mark: mark, rule: rule, services: ["app", "app.settings"])
            #expect(try installation.resolve(in: vault) == .firstStart)
            #expect(try installation.resolve(in: vault) == .sameInstallation)
            for (service, account) in [("app", "a"), ("app.settings", "b"), ("another app", "c")] {
                try vault.write(.text(secret("held")), to: item(account, service))
            }
            try body(vault, store, mark, installation)
        }
    }

    @Test(arguments: [(ReinstallRule.keep, 0), (.forget, 2)]) func aReinstallationFollowsTheRule(
        _ rule: ReinstallRule, _ removed: Int
    ) throws {
        try withVault(rule) { vault, _, mark, installation throws in
            mark.become(.absent)
            #expect(try installation.resolve(in: vault) == .reinstalled(removed: removed))
            #expect(try accounts(vault, "app").count + accounts(vault, "app.settings").count == 2 - removed)
            #expect(try accounts(vault, "another app") == ["c"])
            #expect(try installation.resolve(in: vault) == .sameInstallation)
        }
    }

    /// A phone that was not unlocked yet shows no files and no keychain: taken for a new installation, that
    /// would sign its user out.
    @Test(arguments: ["mark locked", "mark failed", "vault locked", "vault failed"])
    func nothingIsForgottenWhenUnsure(
        _ what: String
    ) throws {
        try withVault(.forget) { vault, store, mark, installation throws in
            let before = mark.read()
            switch what {
            case "mark locked": mark.become(.locked("test"))
            case "mark failed": mark.become(.failed("test"))
            case "vault locked":
                store.become(.locked)
                mark.become(.absent)
            default:
                store.become(.failing)
                mark.become(.absent)
            }
            #expect(try installation.resolve(in: vault) == .undecided)
            store.become(.open)
            mark.become(before)
            #expect(try accounts(vault, "app") == ["a"])
        }
    }

    @Test func aMarkFromABackupForgetsNothing() throws {
        try withVault(.forget) { vault, _, mark, installation throws in
            mark.become(.value([1, 2, 3]))
            #expect(try installation.resolve(in: vault) == .reinstalled(removed: 0))
            #expect(try accounts(vault, "app") == ["a"])
        }
    }

    @Test func aMarkInAFileOutlivesTheProcess() throws {
        try withFolder { folder throws in
            let mark = MarkFile("\(folder)/mark")
            #expect(kind(mark.read()) == "absent")
            try mark.write([1, 2])
            #expect(try MarkFile("\(folder)/mark").read().get() == [1, 2])
        }
    }
}
