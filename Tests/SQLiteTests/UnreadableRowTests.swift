import CountersignAuthority
import CountersignGate
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// A row that is none of ours is damage, or a newer version's: it stops the reading, and is never taken for
/// something else.
@Suite struct UnreadableRowTests {
    @Test(
        "a row with",
        arguments: [
            ("UPDATE account SET state = 'odd'", "account `"),
            ("UPDATE account SET name = 'ADA'", "account `"),
            (
                """
                UPDATE account SET credential = NULL, sealed_record = NULL, rung = 'odd', sealed_legacy = \
                x'01'
                """,
                "account `"
            ),
            ("UPDATE session SET id = x'00'", "session, change `"),
            ("UPDATE session SET platform = ''", "session, change `"),
            ("UPDATE session SET device_class = 'toaster'", "session, change `"),
            ("UPDATE session SET ended_at = 1, end_reason = 'boredom'", "session, change `"),
            ("UPDATE session SET epoch = 4294967296", "session, change `"),
            ("UPDATE session SET epoch = -1", "session, change `"),
            ("UPDATE session SET attempts = x'00000002FF'", "session, change `"),
            ("UPDATE session SET next_sealed_root = x'01', next_attempts = x'000000'", "session, change `"),
            (
                "UPDATE idempotent_request SET status = 200, fields = x'00000001', body = x''",
                "idempotent request of `"
            ),
            (
                "UPDATE idempotent_request SET status = 200, fields = x'0000000161', body = x''",
                "idempotent request of `"
            ),
        ])
    func unreadable(_ row: (sql: String, what: String)) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        let store = SQLStore(path: path)
        try store.prepare()
        let contract = StoreContract(store)
        _ = try store.insert(App(name: #require(AppName("shop")), created: 1), recording: .counting)
        let account = try contract.added(contract.accountDraft("ada"))
        _ = try contract.open(StoreContract.session(1, of: account), .single)
        let request = IdempotentRequest(scope: .account(1), key: [1], digest: [2], begun: 3)
        #expect(try store.begin(request, within: .init()) == .begun)
        func read() throws {
            _ = try store.account(account.number)
            _ = try store.sessions(changedAfter: 0, limit: 10)
            _ = try store.begin(request, within: .init())
        }
        try read()
        #expect(try Database(path: path).run(row.sql) == 1)
        let fault = #expect(throws: OperationalError.self) { try read() }
        #expect(fault?.kind == .unreachable)
        #expect(fault?.message.contains(row.what) == true && fault?.message.contains(path) == true)
    }
}
