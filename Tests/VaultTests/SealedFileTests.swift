import CountersignSeal
import Foundation
import Testing

@testable import CountersignVault

@Suite struct SealedFileTests {
    /// A file with one item, and a vault on it under `passphrase`.
    private func withFile(_ passphrase: String?, _ body: (String, SealedFile) throws -> Void) throws {
        try withFolder { folder throws in
            let path = "\(folder)/items"
            try SealedFile(path, guardedBy: cheap("right")).put(secret("held in secret"), at: item("a"))
            try body(path, SealedFile(path, guardedBy: cheap(passphrase)))
        }
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        try Array(Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    /// Two vaults under one passphrase have two salts and so two keys: a table of guesses computed for one vault
    /// does not apply to another. Source: RFC 9106 §3.1.
    @Test func eachVaultHasASaltOfItsOwn() throws {
        let key = secret("0123456789abcdef0123456789abcdef")
        let sealed = try (0..<8).map { _ in try cheap("right").seal(key) }
        let salts = sealed.map { Array($0[9..<(9 + Argon2id.saltCount)]) }
        #expect(Set(salts).count == sealed.count)
        for salt in salts { #expect(Set(salt).count > 1, "\(salt)") }
    }

    @Test func itIsSealedAndTheOwnersAlone() throws {
        try withFile("right") { path, file throws in
            let text = String(decoding: try bytes(path), as: UTF8.self)
            #expect(!text.contains("held in secret") && !text.contains("test"))
            #expect(
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            #expect(try kind(file.find(item("a"))) == "value")
            #expect(try kind(file.find(item("b"))) == "absent")
        }
    }

    @Test(arguments: [0o640, 0o604, 0o620]) func aFileThatOthersMayReadOrWriteIsNotOpened(_ mode: Int) throws
    {
        try withFile("right") { path, _ throws in
            for (mode, opens) in [(mode, false), (0o600, true)] {
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
                let file = SealedFile(path, guardedBy: cheap("right"))
                #expect(try (kind(file.find(item("a"))) == "value") == opens, "\(mode)")
            }
        }
    }

    @Test(arguments: [("wrong" as String?), nil, ""]) func withoutThePassphraseItIsLockedAndNotWrittenOver(
        _ passphrase: String?
    ) throws {
        try withFile(passphrase) { path, file throws in
            let before = try bytes(path)
            let name = try item("a")
            #expect(kind(file.find(name)) == "locked")
            #expect(ending { () throws(VaultError) in try file.names() } == "locked")
            #expect(ending { () throws(VaultError) in try file.put(secret("new"), at: name) } == "locked")
            #expect(ending { () throws(VaultError) in try file.remove(name) } == "locked")
            #expect(try bytes(path) == before)
        }
    }

    /// Whatever a byte is changed to, and wherever the file is cut off: never absent, never a value, never
    /// written over.
    @Test func anAlteredFileIsNeitherReadNorTakenForAbsent() throws {
        try withFile("right") { path, file throws in
            let whole = try bytes(path)
            let name = try item("a")
            var spoilt = whole.indices.map { index in
                var copy = whole
                copy[index] ^= 0x55
                return copy
            }
            spoilt += whole.indices.map { Array(whole[..<$0]) }
            for (number, bytes) in spoilt.enumerated() {
                try write(bytes, path)
                let found = kind(SealedFile(path, guardedBy: cheap("right")).find(name))
                #expect(found == "failed" || found == "locked", "\(number)")
                #expect(
                    ending { () throws(VaultError) in try file.put(secret("new"), at: name) } != "done",
                    "\(number)")
                #expect(try self.bytes(path) == bytes)
            }
            try write(whole, path)
            #expect(kind(file.find(name)) == "value")
        }
    }

    /// One KiB over the most, one pass over the most: paid, they would open nothing, and say `locked`.
    @Test(arguments: [(1, [0, 8, 0, 1] as [UInt8]), (5, [0, 0, 0, 17])]) func aPriceThatAForgerNamesIsNotPaid(
        _ at: Int, _ price: [UInt8]
    ) throws {
        var forged = try cheap("right").seal(MasterKey.random())
        forged.replaceSubrange(at..<at + 4, with: price)
        let sealed = forged
        #expect(ending { () throws(VaultError) in try cheap("right").open(sealed) } == "failed")
    }

    @Test func anotherGuardsFileIsNotAbsent() throws {
        struct Other: KeyGuard {
            let kind = KeyGuardKind.keyFile
            func seal(_ key: Secret) throws(VaultError) -> [UInt8] { throw .failed("test") }
            func open(_ sealed: [UInt8]) throws(VaultError) -> Secret { throw .failed("test") }
        }
        try withFile("right") { path, _ throws in
            #expect(try kind(SealedFile(path, guardedBy: Other()).find(item("a"))) == "failed")
        }
    }

    /// 1 and 2 are no guard's number.
    @Test(arguments: [1, 2, 5] as [UInt8]) func aFileOfAnUnknownGuardIsNotAbsent(_ number: UInt8) throws {
        try withFile("right") { path, file throws in
            var whole = try bytes(path)
            whole[4] = number
            try write(whole, path)
            guard case .failed(let detail) = try file.find(item("a")) else {
                Issue.record("was read")
                return
            }
            #expect(detail.contains("key guard that this version does not have: number \(number)"))
        }
    }

    @Test func oneThatOthersMayReadIsRefused() throws {
        try withFile("right") { path, file throws in
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
            #expect(try kind(file.find(item("a"))) == "failed")
        }
    }

    @Test func aTableThatDoesNotAddUpIsRefused() throws {
        let table: [([UInt8], Bool)] = [
            ([], false), ([1], true), ([2], false), ([1, 0], false),
            ([1, 0, 1, 0, 1, 0, 0, 0, 0, 0x61, 0x62], true),
            ([1, 0, 1, 0, 1, 0, 0, 0, 1, 0x61, 0x62], false),
            // Longer than there is; a service of no bytes; one that is no UTF-8.
            ([1, 0xFF, 0xFF, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x61, 0x62], false),
            ([1, 0, 0, 0, 1, 0, 0, 0, 0, 0x62], false), ([1, 0, 1, 0, 1, 0, 0, 0, 0, 0xFF, 0x62], false),
            // The same name twice.
            ([1, 0, 1, 0, 1, 0, 0, 0, 0, 0x61, 0x62, 0, 1, 0, 1, 0, 0, 0, 0, 0x61, 0x62], false),
        ]
        for (bytes, isGood) in table {
            #expect((ItemTable(Secret(copying: bytes.span)) != nil) == isGood, "\(bytes)")
        }
    }
}
