import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Foundation
import Synchronization

@testable import CountersignClient

/// A legacy client, its server and its vault, all in this process.
final class LegacyWorld: Sendable {
    let server: OldServer
    let items = LegacyItems()
    let folder: String
    let account: LegacyAccount
    let calls: LegacyCalls
    let said = Said()
    init(
        _ server: OldServer = OldServer(), rung: Rung = .plainPost,
        settings: LadderSettings = LadderSettings(),
        signing: LegacySigningMethod = .none, remembering: LegacyAccount.Remembering = .nothing,
        _ adjust: (inout LegacyServer) -> Void = { _ in }
    ) throws {
        self.server = server
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("legacy-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var legacy = LegacyServer(
            host: "old.example.com", transport: .tls, signing: signing, userAgent: "test", channel: .pinned)
        legacy.login = LegacyLoginRoute(rung, settings: settings)
        adjust(&legacy)
        account = try LegacyWorld.account(legacy, server, items, folder, moment, remembering, said)
        calls = LegacyCalls(account)
        self.legacy = legacy
        self.remembering = remembering
    }

    private let legacy: LegacyServer
    /// The device's clock.
    private let moment = Moment()
    private let remembering: LegacyAccount.Remembering

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Another process of the same app: the same vault, and nothing in memory. Or the app's next version,
    /// which may remember less.
    func another(remembering: LegacyAccount.Remembering? = nil) throws -> LegacyAccount {
        try LegacyWorld.account(
            legacy, server, items, folder, moment, remembering ?? self.remembering, Said())
    }

    private static func account(
        _ legacy: LegacyServer, _ server: OldServer, _ items: LegacyItems, _ folder: String, _ moment: Moment,
        _ remembering: LegacyAccount.Remembering, _ said: Said
    ) throws -> LegacyAccount {
        let vault = Vault(items, locks: VaultLocks(folder: folder))
        let store = LegacyStore(vault, item: try ItemName(service: "legacy", account: "session"))
        let exchange = LegacyExchange(
            legacy, transport: server, own: server, now: { moment.now }, random: SystemRandom())
        return LegacyAccount(exchange, store: store, remembering: remembering) { said.add($0) }
    }

    func logIn(_ password: String = "pass word+1") async throws {
        try await account.logIn(OldServer.user.name, password: Secret(copying: Array(password.utf8).span))
    }

    func post(_ body: String = "{}", as caller: LegacyCalls.Caller = .user) async throws -> String {
        var draft = Draft(method: "POST", target: Array("/api".utf8), authority: "old.example.com")
        draft.body = Array(body.utf8)
        draft.setField("Content-Type", to: "application/json")
        return String(decoding: try await calls.send(draft, as: caller).message.body, as: UTF8.self)
    }

    func kept() async throws -> LegacyPersistedState { try await account.readVault().kept }

    /// The states that the account announced.
    final class Said: Sendable {
        private let standings = Mutex<[LegacySessionStatus]>([])
        var all: [LegacySessionStatus] { standings.withLock { $0 } }
        var last: LegacySessionStatus? { all.last }
        func add(_ standing: LegacySessionStatus) { standings.withLock { $0.append(standing) } }
    }

    final class Moment: Sendable {
        private let seconds = Mutex<Int64>(1_710_002_880)
        var now: Int64 { seconds.withLock { $0 } }
        func advance(_ by: Int64) { seconds.withLock { $0 += by } }
    }

    func advance(_ seconds: Int64) { moment.advance(seconds) }
}

/// Items in memory, which can be locked.
final class LegacyItems: ItemStore {
    private let items = Mutex<[ItemName: Secret]>([:])
    private let lock = Mutex(false)
    private let looks = Mutex(0)

    /// The number of reads of the vault.
    var reads: Int { looks.withLock { $0 } }

    func lock(_ isLocked: Bool) { lock.withLock { $0 = isLocked } }
    /// The decrypted contents of the vault.
    var contents: [UInt8] {
        var all: [UInt8] = []
        for secret in items.withLock({ Array($0.values) }) {
            secret.withExposedBytes { bytes in for at in bytes.indices { all.append(bytes[at]) } }
        }
        return all
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        looks.withLock { $0 += 1 }
        if lock.withLock({ $0 }) { return .locked("test") }
        return items.withLock { $0[name] }.map { .value($0) } ?? .absent
    }

    func names() throws(VaultError) -> [ItemName] { items.withLock { Array($0.keys) } }

    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) {
        if lock.withLock({ $0 }) { throw .locked("test") }
        items.withLock { $0[name] = bytes }
    }

    func remove(_ name: ItemName) throws(VaultError) {
        if lock.withLock({ $0 }) { throw .locked("test") }
        items.withLock { _ = $0.removeValue(forKey: name) }
    }
}

/// The problem that `body` ends with; nil if it succeeds.
func problem(_ body: () async throws -> some Any) async -> String? {
    do {
        _ = try await body()
        return nil
    } catch let error as ClientOperationError {
        return Mirror(reflecting: error).children.first?.label ?? "\(error)"
    } catch {
        return "\(error)"
    }
}

extension SessionEndRecord {
    /// Whether the server has said that the session is over.
    var isTold: Bool { ![.byUser, .tokenExpired, .credentialsRefused].contains(self) }
}
