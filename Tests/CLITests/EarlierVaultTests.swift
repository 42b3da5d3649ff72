import CountersignSeal
import CountersignVault
import CountersignWire
import Foundation
import Testing

@testable import CountersignCLI

/// Profiles of earlier builds.
@Suite struct EarlierVaultTests {
    private let folder: ProfileFolder
    private let name: ItemName

    init() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-\(UUID().uuidString)")
        folder = try ProfileFolder("demo", environment: Environment(variables: ["HOME": home.path]))
        name = try ItemName(service: "countersign a.example", account: "app")
        try folder.make()
    }

    private func file(_ path: String, _ bytes: [UInt8]) {
        let isMade = FileManager.default.createFile(
            atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
        #expect(isMade)
    }

    /// As it was then: one secret, under the key beside it.
    private func makeEarlier(_ contents: String) throws {
        let key = MasterKey.random()
        let secret = Secret(copying: Array(contents.utf8).span)
        let sealed = try #require(MasterKey(key)).seal(
            secret, as: SealBinding(kind: "client-vault", row: "vault"))
        file(folder.vault, sealed)
        file(folder.vaultKey, key.withExposedBytes { span in span.indices.map { span[$0] } })
    }

    private var vault: Vault {
        let store = SealedFile(folder.vault, guardedBy: KeyFileGuard(folder.vaultKey))
        return Vault(store, locks: VaultLocks(folder: folder.path))
    }

    private func kept() throws -> String? {
        try vault.read(name).get()?.contents.secret.withExposedBytes { $0.text }
    }

    @Test func whatItHeldIsMovedOnce() throws {
        try makeEarlier("who is signed in")
        #expect(throws: VaultError.self) { try kept() }
        try LegacyProfileVault(folder: folder).migrate(to: name)
        #expect(try kept() == "who is signed in")
        try vault.write(.bytes(Secret(copying: Array("somebody else".utf8).span)), to: name)
        try LegacyProfileVault(folder: folder).migrate(to: name)
        #expect(try kept() == "somebody else")
        let mode = try FileManager.default.attributesOfItem(atPath: folder.vault)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func whatDoesNotOpenStays() throws {
        try makeEarlier("who is signed in")
        file(folder.vaultKey, [UInt8](repeating: 7, count: 32))
        let before = FileManager.default.contents(atPath: folder.vault)
        #expect(throws: OperationalError.self) { try LegacyProfileVault(folder: folder).migrate(to: name) }
        #expect(FileManager.default.contents(atPath: folder.vault) == before && before != nil)
    }

    @Test func whereThereIsNoneNothingIsMade() throws {
        try LegacyProfileVault(folder: folder).migrate(to: name)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
}
