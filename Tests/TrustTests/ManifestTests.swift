import CountersignSeal
import CountersignTrust
import Foundation
import Testing

/// Manifests: whose, which, when; and that nothing older ever comes back.
struct ManifestTests {
    private static let pinA = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let pinB = "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="

    /// Keeps in memory, and breaks when asked to.
    private final class MemoryStore: ManifestStore {
        let kept = Locked<[UInt8]?>(nil)
        let isBroken = Locked(false)

        func read() throws(ManifestError) -> [UInt8]? { kept.with { $0 } }

        func write(_ bytes: [UInt8]) throws(ManifestError) {
            guard !isBroken.with({ $0 }) else { throw .store("broken") }
            kept.with { $0 = bytes }
        }
    }

    private let key: PrivateKey
    private let nextKey: PrivateKey
    private let store = MemoryStore()
    private let builtIn: Trust

    init() throws {
        key = try PrivateKey(random: .ed25519)
        nextKey = try PrivateKey(random: .ed25519)
        builtIn = Trust([try .host("old.example.com", .system)], others: .system)
    }

    private func raw(_ key: PrivateKey) -> [UInt8] { Array(key.publicKey.der.suffix(32)) }

    private func keeper(version: Int = 3) throws -> TrustKeeper {
        try TrustKeeper(
            builtIn: builtIn, version: version, app: "shop", keys: [raw(key), raw(nextKey)], store: store)
    }

    private func manifest(
        _ version: Int, app: String = "shop", from: Int = 1000, till: Int = 2000,
        host: String = "new.example.com",
        backups: String = "[\"\(ManifestTests.pinB)\"]", more: String = ""
    ) -> String {
        """
        {"app":"\(app)","version":\(version),"not_before":\(from),"not_after":\(till),"hosts":[
          {"pattern":"\(host)","pins":["\(ManifestTests.pinA)"],"backups":\(backups)\(more)}]}
        """
    }

    private func signed(_ text: String, by signer: PrivateKey? = nil) throws -> [UInt8] {
        try #require(SignedManifest.text(of: Array(text.utf8), signedBy: signer ?? key))
    }

    @Test func takesTheBuiltInSetsPlace() throws {
        let keeper = try keeper()
        #expect(keeper.current.version == 3 && keeper.current.number == 0)
        let next = try keeper.takeUp(signed(manifest(4)), at: 1500)
        #expect(next.number == 1 && next.version == 4 && next.validUntil == 2000)
        #expect(keeper.current.trust.rules.map(\.pattern.description) == ["new.example.com"])
        #expect(keeper.current.trust.others == .system)
        // By the next key as well, and across a restart.
        _ = try keeper.takeUp(signed(manifest(5), by: nextKey), at: 1500)
        #expect(try self.keeper().current.version == 5)
    }

    @Test func theVersionOnlyGrows() throws {
        let keeper = try keeper()
        _ = try keeper.takeUp(signed(manifest(7)), at: 1500)
        for version in [1, 3, 6, 7] {
            #expect(throws: ManifestError.notNewer(version: version, inForce: 7)) {
                try keeper.takeUp(signed(manifest(version)), at: 1500)
            }
            // After a restart, too.
            #expect(throws: ManifestError.notNewer(version: version, inForce: 7)) {
                try self.keeper().takeUp(signed(manifest(version)), at: 1500)
            }
        }
        #expect(keeper.current.number == 1)
    }

    @Test func aNewAppIsNewerThanAnOldManifest() throws {
        _ = try keeper().takeUp(signed(manifest(7)), at: 1500)
        let updated = try keeper(version: 8)
        #expect(updated.current.version == 8)
        #expect(updated.current.trust.rules.map(\.pattern.description) == ["old.example.com"])
    }

    @Test func itsTimeAndAnExpiryThatBringsNothingBack() throws {
        let keeper = try keeper()
        #expect(throws: ManifestError.notYetValid(from: 1000)) {
            try keeper.takeUp(signed(manifest(4)), at: 999)
        }
        #expect(throws: ManifestError.expired(at: 2000)) {
            try keeper.takeUp(signed(manifest(4)), at: 2001)
        }
        #expect(keeper.current.version == 3)
        _ = try keeper.takeUp(signed(manifest(4)), at: 2000)
        // Years later it is what is in force still, and the one before it is refused.
        #expect(try self.keeper().current.version == 4)
        #expect(throws: ManifestError.notNewer(version: 3, inForce: 4)) {
            try keeper.takeUp(signed(manifest(3, till: 9_000_000)), at: 8_000_000)
        }
    }

    @Test func onlyOurs() throws {
        let keeper = try keeper()
        #expect(throws: ManifestError.otherApp("bank")) {
            try keeper.takeUp(signed(manifest(4, app: "bank")), at: 1500)
        }
        let stranger = try PrivateKey(random: .ed25519)
        #expect(throws: ManifestError.badSignature) {
            try keeper.takeUp(signed(manifest(4), by: stranger), at: 1500)
        }
        // A signature by our key over the same bytes, made for something else.
        let text = Array(manifest(4).utf8)
        let signature = key.sign(text.span)
        let bare = try #require(signature)
        let forged = "{\"manifest\":\"\(base64url(text))\",\"signature\":\"\(base64url(bare))\"}"
        #expect(throws: ManifestError.badSignature) { try keeper.takeUp(Array(forged.utf8), at: 1500) }
        #expect(keeper.current.version == 3 && store.kept.with { $0 } == nil)
    }

    @Test func everyBitCounts() throws {
        let keeper = try keeper()
        let good = try signed(manifest(4))
        for index in good.indices {
            var changed = good
            changed[index] ^= 1
            #expect(throws: ManifestError.self) { try keeper.takeUp(changed, at: 1500) }
        }
        #expect(keeper.current.version == 3)
    }

    @Test func whatIsNotDurableDoesNotCount() throws {
        let keeper = try keeper()
        store.isBroken.with { $0 = true }
        #expect(throws: ManifestError.store("broken")) { try keeper.takeUp(signed(manifest(4)), at: 1500) }
        #expect(keeper.current.version == 3)
        store.isBroken.with { $0 = false }
        _ = try keeper.takeUp(signed(manifest(4)), at: 1500)
    }

    @Test func whatIsNoManifest() throws {
        let keeper = try keeper()
        for text in [
            "", "{}", "[]", manifest(0), manifest(4, from: 2000, till: 1000), manifest(4, host: "*"),
            manifest(4, backups: "[]"), manifest(4, backups: "[\"\(ManifestTests.pinA)\"]"),
            manifest(4, backups: "[1]"),
            manifest(4, more: ",\"mode\":\"off\""), manifest(4, more: ",\"chain\":\"unchecked\""),
            manifest(4, more: ",\"pins\":[]"),
            "{\"app\":\"shop\",\"version\":4,\"not_before\":1000,\"not_after\":2000,\"hosts\":[]}",
        ] {
            do {
                _ = try keeper.takeUp(signed(text), at: 1500)
                Issue.record("taken: \(text)")
            } catch {
                guard case .malformed = error as? ManifestError else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
        let reporting = try keeper.takeUp(signed(manifest(4, more: ",\"mode\":\"report-only\"")), at: 1500)
        #expect(reporting.trust.rules.map(\.mode) == [.reportOnly])
    }

    @Test func aFileKeepsTheLastOne() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = ManifestFile(path)
        #expect(try file.read() == nil)
        try file.write([1, 2, 3])
        try file.write([4])
        #expect(try file.read() == [4])
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        #expect(throws: ManifestError.self) { try ManifestFile(path + "/none/file").write([1]) }
        #expect(throws: ManifestError.self) { try ManifestFile(path + "/file").read() }
        // What is there and cannot be what we wrote is not taken for nothing.
        try file.write([UInt8](repeating: 0x20, count: 70_000))
        #expect(throws: ManifestError.self) { try file.read() }
    }

    /// After an update with other keys, or with a damaged file, a client must still start.
    @Test func whatNoBuiltInKeyVerifiesIsAsIfItWasNotThere() throws {
        let former = try PrivateKey(random: .ed25519)
        let kept: [([UInt8], ManifestError?)] = [
            (try signed(manifest(9), by: former), .badSignature), (Array("{}".utf8), nil), ([], nil),
            ([0xFF], nil), (try signed(manifest(9, app: "other")), .otherApp("other")),
        ]
        for (bytes, reason) in kept {
            store.kept.with { $0 = bytes }
            let keeper = try keeper()
            #expect(keeper.current.version == 3 && keeper.current.validUntil == nil)
            #expect(keeper.discarded != nil && (reason == nil || keeper.discarded == reason))
            // The built-in version is the floor, and a good one takes its place.
            #expect(throws: ManifestError.notNewer(version: 3, inForce: 3)) {
                try keeper.takeUp(signed(manifest(3)), at: 1500)
            }
            #expect(try keeper.takeUp(signed(manifest(4)), at: 1500).version == 4)
            let again = try self.keeper()
            #expect(again.current.version == 4 && again.discarded == nil)
        }
        store.kept.with { $0 = nil }
        #expect(try keeper().discarded == nil, "nothing was there")
        // A key that is none is a mistake of the app, and found at once.
        #expect(throws: ManifestError.self) {
            try TrustKeeper(builtIn: builtIn, version: 3, app: "shop", keys: [[1, 2]], store: store)
        }
    }

    /// A typing error in the pattern, or a rule that only reports, must not end the pinning of the app's own
    /// server unseen, nor keep its client from starting.
    @Test func theAppsOwnHostStaysPinned() throws {
        let host = try Trust.Host("api.example.com")
        let pins = try Trust.Policy.pins([ManifestTests.pinA], backups: [ManifestTests.pinB])
        let own = Trust([try .host("api.example.com", pins)], others: .refused)
        func keeper(_ builtIn: Trust) throws -> TrustKeeper {
            try TrustKeeper(
                builtIn: builtIn, version: 3, app: "shop", keys: [raw(key)], store: store, covering: host)
        }
        let bad = [
            manifest(4, host: "apl.example.com"), manifest(4, host: "*.api.example.com"),
            manifest(4, host: "api.example.com", more: ",\"mode\":\"report-only\""),
        ]
        for text in bad {
            store.kept.with { $0 = nil }
            let first = try keeper(own)
            #expect(throws: ManifestError.hostNotPinned("api.example.com")) {
                try first.takeUp(signed(text), at: 1500)
            }
            #expect(try store.read() == nil && first.current.version == 3)
            // One that an earlier build kept.
            store.kept.with { $0 = try? signed(text) }
            let second = try keeper(own)
            #expect(second.discarded == .hostNotPinned("api.example.com") && second.current.version == 3)
            #expect(try second.takeUp(signed(manifest(4, host: "*.example.com")), at: 1500).version == 4)
            #expect(try keeper(own).discarded == nil)
        }
        // What the built-in set does not do, no manifest has to.
        store.kept.with { $0 = nil }
        #expect(try keeper(builtIn).takeUp(signed(manifest(4)), at: 1500).version == 4)
        let system = Trust([try .host("api.example.com", .system)], others: .system)
        store.kept.with { $0 = nil }
        #expect(try keeper(system).takeUp(signed(bad[2]), at: 1500).version == 4)
    }

    /// A file that can never be read is not fatal at each launch; one that cannot be read now is.
    @Test func aFileThatIsNoManifestIsDiscarded() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        func keeper(_ path: String) throws -> TrustKeeper {
            try TrustKeeper(
                builtIn: builtIn, version: 3, app: "shop", keys: [raw(key)], store: ManifestFile(path))
        }
        #expect(FileManager.default.createFile(atPath: path, contents: Data(count: 70_000)))
        let long = try keeper(path)
        #expect(long.current.version == 3 && long.discarded != nil)
        #expect(try long.takeUp(signed(manifest(4)), at: 1500).version == 4)
        #expect(try keeper(path).current.version == 4)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(try keeper(path).discarded != nil, "a folder")
        #expect {
            try keeper("\(path)/\(String(repeating: "x", count: 300))")
        } throws: { error in
            if case ManifestError.store = error { true } else { false }
        }
    }

    private func base64url(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
    }
}
