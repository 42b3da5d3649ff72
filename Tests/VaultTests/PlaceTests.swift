import CountersignSeal
import Foundation
import Synchronization
import Testing

@testable import CountersignVault

@Suite struct PlaceTests {
    @Test func aFolderKeepsTextAndBytesForTheNextStart() async throws {
        try await withFolder { folder async throws in
            let (token, avatar) = (try item("token"), try item("avatar"))
            let vault = Vault(.folder("\(folder)/made/here"))
            try await vault.setText("gruß", at: token, expecting: .absent)
            try await vault.setBytes(Array("text".utf8), at: avatar)
            let again = Vault(.folder("\(folder)/made/here"))
            #expect(try await again.text(token).get() == "gruß")
            #expect(try await again.bytes(avatar).get() == Array("text".utf8))
            #expect(try await again.bytes(token).get() == Array("gruß".utf8))
            // Bytes are no text, be they one by chance.
            #expect(kind(await again.text(avatar)) == "failed")
            #expect(try await again.names() == [avatar, token])
            #expect(try await again.accounts(of: "test") == ["avatar", "token"])
            try await again.remove(token)
            #expect(kind(await vault.text(token)) == "absent")
            for file in ["items.sealed", "items.key"] {
                let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/made/here/\(file)")[
                    .posixPermissions]
                #expect(mode as? Int == 0o600)
            }
        }
    }

    @Test func aLateWriterIsToldSo() async throws {
        try await withFolder { folder async throws in
            let name = try item("session")
            let vault = Vault(.folder(folder))
            try await vault.setText("first", at: name)
            let read = try #require(try await vault.item(name).get())
            try await vault.remove(name)
            await #expect(throws: VaultError.changed) {
                try await vault.setText("late", at: name, expecting: .version(read.version))
            }
            #expect(read.text == "first")
            #expect(kind(await vault.text(name)) == "absent")
        }
    }

    @Test func theLeaseIsOneHolders() async throws {
        try await withFolder { folder async throws in
            let (one, other) = (Vault(.folder(folder)), Vault(.folder(folder)))
            try await one.withLease {
                await #expect(throws: VaultError.self) {
                    try await other.withLease(within: .milliseconds(60)) {}
                }
            }
            try await other.withLease(within: .seconds(5)) {}
        }
    }

    @Test func aKeychainIsReadAtTheFirstUseAndItsRuleIsAppliedOnce() async throws {
        try await withFolder { folder async throws in
            let store = MemoryStore()
            store.become(.locked)
            let vault = VaultPlace(.outliving(store, folder: folder)).vault(owning: ["test"])
            // The rule reads the mark that the installation left in the store.
            let mark = try item("test", "countersign.installation")
            #expect(store.reads(of: mark) == 0)
            #expect(kind(await vault.text(try item("a"))) == "locked")
            store.become(.open)
            #expect(kind(await vault.text(try item("a"))) == "absent")
            let reads = store.reads(of: mark)
            #expect(reads >= 2)
            try await vault.setText("x", at: try item("a"))
            #expect(store.reads(of: mark) == reads)
        }
    }

    #if os(Linux)
        /// A file under a passphrase, which is asked for at the first use, and opens nothing if it is another.
        @Test func aPassphraseIsAskedForAtTheFirstUse() async throws {
            try await withFolder { folder async throws in
                let asked = Mutex(0)
                func vault(_ passphrase: String?) -> Vault {
                    Vault(
                        .platform(folder: "\(folder)/made") {
                            asked.withLock { $0 += 1 }
                            return passphrase
                        })
                }
                let right = vault("right")
                #expect(asked.withLock { $0 } == 0)
                try await right.setText("held", at: try item("a"))
                #expect(asked.withLock { $0 } > 0)
                #expect(try await vault("right").text(try item("a")).get() == "held")
                for other in ["wrong", nil] {
                    #expect(kind(await vault(other).text(try item("a"))) == "locked")
                }
                // Its key is not beside it.
                let keyed = Vault(.platform(folder: "\(folder)/made"))
                #expect(kind(await keyed.text(try item("a"))) == "failed")
            }
        }
    #endif

    @Test(arguments: [(ReinstallRule.keep, "value"), (.forget, "absent")]) func aProgramInstalledAgain(
        _ rule: ReinstallRule, _ expected: String
    ) async throws {
        try await withFolder { folder async throws in
            let place = VaultPlace(.outliving(MemoryStore(), folder: "\(folder)/data"))
                .afterReinstall(rule, services: ["extra"])
            let vault = place.vault(owning: ["test"])
            for service in ["test", "extra", "another app"] {
                try await vault.setText("held", at: try item("a", service))
            }
            // The same installation starts again: all is there.
            #expect(kind(await place.vault(owning: ["test"]).text(try item("a"))) == "value")
            try FileManager.default.removeItem(atPath: "\(folder)/data")
            let again = place.vault(owning: ["test"])
            #expect(kind(await again.text(try item("a"))) == expected)
            #expect(kind(await again.text(try item("a", "extra"))) == expected)
            #expect(kind(await again.text(try item("a", "another app"))) == "value")
        }
    }

    /// What may be an earlier owner's is not shown, nor forgotten, until it can be told.
    @Test func anUndecidedReinstallationIsLocked() async throws {
        try await withFolder { folder async throws in
            let store = MemoryStore()
            let place = VaultPlace(.outliving(store, folder: "\(folder)/data"))
            try await place.vault(owning: ["test"]).setText("held", at: try item("a"))
            try FileManager.default.removeItem(atPath: "\(folder)/data")
            store.become(.locked)
            let vault = place.vault(owning: ["test"])
            #expect(kind(await vault.text(try item("a"))) == "locked")
            store.become(.open)
            #expect(kind(await vault.text(try item("a"))) == "absent")
        }
    }

    @Test func nobodyKeepsATasksThreadWaiting() async throws {
        // More questions at once than there are threads for tasks, each answered by a task.
        let line = BlockingWorkQueue("test")
        let answers = try await withThrowingTaskGroup(of: Int?.self) { group in
            for number in 0..<64 {
                group.addTask {
                    try await line.run { .success(BlockingWorkQueue.wait { await answer(number) }) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.compactMap { $0 }.sorted() == Array(0..<64))
    }
}

private func answer(_ number: Int) async -> Int {
    await Task.yield()
    return number
}

private func withFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("vault-\(UUID().uuidString)")
        .path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try await body(folder)
}
