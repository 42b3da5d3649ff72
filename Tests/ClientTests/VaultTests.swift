import CountersignSeal
import Foundation
import Testing

@testable import CountersignClient

/// What any vault must do, and what the sealed file tells apart.
@Suite struct VaultTests {
    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("vault-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private func secret(_ text: String) -> Secret {
        let bytes = Array(text.utf8)
        return Secret(copying: bytes.span)
    }

    private func text(_ reading: VaultReading) -> String? {
        guard case .value(let secret) = reading else { return nil }
        return secret.withExposedBytes { span in String(decoding: span.indices.map { span[$0] }, as: UTF8.self) }
    }

    private func problem(_ reading: VaultReading) -> String? {
        if case .unreadable(let problem) = reading { problem.detail } else { nil }
    }

    private func isAbsent(_ reading: VaultReading) -> Bool {
        if case .absent = reading { true } else { false }
    }

    @Test(arguments: ["memory", "file"]) func theContract(_ kind: String) async throws {
        try await withFolder { folder in
            let vault: any Vault = kind == "memory" ? MemoryVault() : SealedFile("\(folder)/vault")
            #expect(isAbsent(vault.read()))
            for contents in ["first", "", "second"] {
                try vault.write(secret(contents))
                #expect(text(vault.read()) == contents)
            }
            let lease = try await vault.lease()
            let other = Task { try await vault.lease().release() }
            try await Task.sleep(nanoseconds: 50_000_000)
            lease.release()
            try await other.value
            try vault.erase()
            #expect(isAbsent(vault.read()))
        }
    }

    @Test func aFileThatCannotBeToldIsNotAbsent() async throws {
        try await withFolder { folder in
            let path = "\(folder)/vault"
            let vault = SealedFile(path)
            try vault.write(secret("held"))
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(bytes.range(of: Data("held".utf8)) == nil)
            for name in [path, "\(path).key"] {
                #expect(try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions] as? Int == 0o600)
                try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: name)
                #expect(try #require(problem(vault.read())).contains("mode 0640"))
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: name)
            }
            for index in [0, bytes.count / 2, bytes.count - 1] {
                var changed = bytes
                changed[index] ^= 1
                try changed.write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
                #expect(try #require(problem(vault.read())).contains("does not open"))
            }
            try FileManager.default.removeItem(atPath: "\(path).key")
            #expect(try #require(problem(vault.read())).contains("gone"))
        }
    }

    @Test func aLeaseIsNotWaitedForForEver() async throws {
        try await withFolder { folder in
            let lease = try await SealedFile("\(folder)/vault").lease()
            await #expect(throws: VaultProblem.self) { try await SealedFile("\(folder)/vault", patience: 1).lease() }
            lease.release()
            try await SealedFile("\(folder)/vault", patience: 1).lease().release()
        }
    }

    @Test func partsAreReadAsTheyWereWritten() throws {
        var parts = VaultParts()
        parts.set(7, "text")
        parts.set(200, Int64.min)
        parts[9] = secret("")
        let again = try #require(VaultParts(parts.contents))
        #expect(again.text(7) == "text")
        #expect(again.number(200) == .min)
        #expect(again.bytes(9) == [])
        #expect(again[8] == nil)
        let whole = parts.contents
        for count in 0..<whole.count {
            let short = VaultParts(whole.part(0..<count))
            #expect(short == nil || short?.contents.count == count)
        }
    }

    /// A build that is put back for a day must not cost what the newer one kept.
    @Test func whatANewerBuildKeepsOutlivesAnOlderOne() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        guard case .value(let contents) = world.vault.read(), var parts = VaultParts(contents) else {
            throw FakeAuthority.Problem.broken
        }
        parts.set(9, "the client's")
        parts.set(200, "the session's")
        try world.vault.write(parts.contents)
        try await KeptState(vault: world.vault).change { $0.clockOffset = 5 }
        func kept() throws -> VaultParts? {
            guard case .value(let contents) = world.vault.read() else { return nil }
            return VaultParts(contents)
        }
        #expect(try kept()?.number(2) == 5)
        #expect(try kept()?.text(9) == "the client's" && kept()?.text(200) == "the session's")
        // What belonged to a session is not the next one's.
        try await world.logIn()
        #expect(try kept()?.text(9) == "the client's" && kept()?.bytes(200) == nil)
    }
}
