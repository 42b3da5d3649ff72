import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// Stores whose rows have tags, for tests.
enum TaggedStore {
    static let rows = makeRows()

    /// An authenticator of the same key, without findings.
    static func makeRows() -> RowAuthenticator? {
        RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span))
    }

    /// An empty store, removed after `body`.
    static func make(_ body: (_ path: String, _ store: SQLStore) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("countersign-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = "\(folder)/countersign.db"
        let rows = try #require(rows)
        try body(path, SQLStore(path: path, rows: rows))
    }

    static func findings(_ path: String) throws -> RowVerification {
        let rows = try #require(rows)
        let store = SQLStore(path: path, rows: rows)
        defer { store.close() }
        return try store.verifyRows()
    }

    /// Adds an app with a release, and two accounts with a session and a device each.
    static func fill(_ store: SQLStore) throws {
        try store.prepare()
        _ = try store.tagAllRows()
        let app = try #require(AppName("shop"))
        let id = try #require(KeyID("r_1"))
        _ = try store.insert(
            App(name: app, created: 1, settings: ["window": .text("9s")]), recording: .counting)
        _ = try store.insert(
            Release(
                id: id, app: app, platform: #require(Platform("ios")), version: #require(Version("1.0")),
                scheme: .messageSignatures, sealedSecret: [1], created: 1), recording: .counting)
        _ = try store.change(id, applying: [("debug", "on")], recording: .counting)
        var retirement = AppRelease.Retirement(at: 9, updateURL: "u:x")
        retirement.rollout = [AppRelease.RolloutStep(since: 1, percent: 5)]
        _ = try store.retire(id, with: retirement, recording: .counting)
        let contract = StoreContract(store)
        for (number, name) in ["ada", "bob"].enumerated() {
            let account = try contract.added(contract.accountDraft(name))
            _ = try contract.open(StoreContract.session(number, of: account), .single)
        }
    }
}
