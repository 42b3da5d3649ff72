import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

extension AuthenticatedTable: CustomTestStringConvertible {
    /// The table in the names of test cases.
    public var testDescription: String { name }
}

/// A writer to the database without the key: in each authenticated table, a row that was changed, deleted, put
/// back to an earlier state or added is refused and reported.
@Suite struct DatabaseWriterTests {
    enum Attack: String, CaseIterable { case changed, deleted, reverted, inserted }

    /// How the rows of one table are attacked, and when they count as refused.
    private struct Target {
        /// Changes of one row.
        var changes: [String]
        /// The row that is deleted.
        var victim: String
        /// What the server does, and the attacker undoes.
        var ours: [String]
        /// Turns a copy of a row, tag included, into another row.
        var planted: String
        /// Attacks that are refused before all rows are verified.
        var immediate: Set<Attack> = [.changed, .inserted]
        var refuses: (SQLStore, Attack) throws -> Bool
    }

    private static let firstTicket = [UInt8](repeating: 1, count: 16)
    private static let erased = [UInt8](repeating: 0xE1, count: 32)

    /// A start, and each reload, reads the policies as a whole.
    private static func policy(_ changes: [String], victim: String, planted: String) -> Target {
        Target(
            changes: changes, victim: victim, ours: [changes[0]], planted: planted,
            immediate: Set(Attack.allCases)
        ) { store, _ in fails { try store.snapshot() } }
    }

    private static func targets() throws -> [String: Target] {
        [
            "app": policy(["UPDATE app SET created = 2"], victim: "1", planted: "name = 'evil'"),
            "app_setting": policy(
                ["UPDATE app_setting SET text = '90s'", "UPDATE app_setting SET name = 'debug'"], victim: "1",
                planted: "name = 'routes', text = '/ open'"),
            "release": policy(
                [
                    "UPDATE release SET retired_at = 99", "UPDATE release SET version = '9.9'",
                    "UPDATE release SET sealed_secret = x'0102'",
                ], victim: "1", planted: "number = 99, key_id = 'r_9', version = '9.9'"),
            "release_setting": policy(
                ["UPDATE release_setting SET text = 'off'"], victim: "1", planted: "name = 'window'"),
            "release_rollout": policy(
                ["UPDATE release_rollout SET percent = 6"], victim: "1", planted: "since = 2"),
            "account": account, "known_device": try knownDevice(), "session": session,
            "upload_ticket": uploadTicket, "erased_name": erasedName, "meta": meta,
            "webhook_delivery": webhookDelivery, "account_code": accountCode,
            "account_verification": accountVerification,
        ]
    }

    private static var account: Target {
        Target(
            changes: [
                "UPDATE account SET user_id = 42 WHERE number = 1",
                "UPDATE account SET name = 'root' WHERE number = 1",
                "UPDATE account SET state = 'locked' WHERE number = 1",
                "UPDATE account SET credential = zeroblob(32) WHERE number = 1",
                "UPDATE account SET row_tag = (SELECT row_tag FROM account WHERE number = 2) WHERE number = 1",
            ], victim: "number = 1", ours: ["UPDATE account SET state = 'locked' WHERE number = 1"],
            planted: "number = 99, name = 'eve', pseudonym = zeroblob(16)"
        ) { store, attack in
            switch attack {
            case .changed, .reverted: fails { try store.account(1) }
            case .inserted: fails { try store.account(99) }
            // The name is free, and the backend would take its next owner for the one before.
            case .deleted: try takes(name: "ada", leaving: [9], in: store) == false
            }
        }
    }

    private static func knownDevice() throws -> Target {
        let first = KnownDevice(signingKey: [UInt8](repeating: 0, count: 65), lastSeen: 0).id
        let hex = first.map { String(format: "%02x", $0) }.joined()
        let planted = [UInt8](repeating: 0, count: 32)
        return Target(
            changes: [
                "UPDATE known_device SET signing_key = zeroblob(64) WHERE id = x'\(hex)'",
                "UPDATE known_device SET name = 'mine' WHERE id = x'\(hex)'",
                "UPDATE known_device SET account = 2 WHERE id = x'\(hex)'",
            ], victim: "id = x'\(hex)'",
            ours: [
                "UPDATE known_device SET name = 'new' WHERE id = x'\(hex)'",
                "DELETE FROM known_device WHERE id = x'\(hex)'",
            ], planted: "id = zeroblob(32)"
        ) { store, attack in
            let id = attack == .inserted ? planted : first
            func knows(_ id: [UInt8]) throws -> Bool {
                try ([1, 2] as [Int64]).contains { account in
                    let listed = try store.knownDevices(of: account).contains { $0.device.id == id }
                    return try store.knownDevice(id, of: account) != nil || listed
                }
            }
            guard attack == .deleted else { return try !knows(id) }
            // The other devices of the group may be of another time, too.
            return try !knows(id) && store.knownDevices(of: 1).isEmpty
        }
    }

    private static var session: Target {
        Target(
            changes: [
                "UPDATE session SET account = 2 WHERE change = 1",
                "UPDATE session SET used = used + 1 WHERE change = 1",
                "UPDATE session SET signing_key = zeroblob(64) WHERE change = 1",
            ], victim: "change = 1",
            ours: [
                "UPDATE session SET ended_at = 9, end_reason = 'revoked' WHERE change = 1",
                "DELETE FROM session WHERE change = 1",
            ], planted: "change = 99, id = zeroblob(16)"
        ) { store, attack in
            switch attack {
            case .changed, .reverted: return fails { try store.session(StoreContract.id(0)) }
            case .deleted: return fails { try store.session(StoreContract.id(7)) }
            case .inserted:
                guard let planted = SessionID([UInt8](repeating: 0, count: 16).span) else { return false }
                return fails { try store.session(planted) }
            }
        }
    }

    private static var uploadTicket: Target {
        Target(
            changes: [
                "UPDATE upload_ticket SET claimed = NULL WHERE number = 1",
                "UPDATE upload_ticket SET claimed = NULL, attempts = 0 WHERE number = 1",
                "UPDATE upload_ticket SET claimed = NULL, account = 2 WHERE number = 1",
                "UPDATE upload_ticket SET claimed = NULL, session = zeroblob(16) WHERE number = 1",
                "UPDATE upload_ticket SET claimed = NULL, target = x'2f' WHERE number = 1",
            ], victim: "number = 1",
            ours: [
                "UPDATE upload_ticket SET attempts = 2 WHERE number = 1",
                "DELETE FROM upload_ticket WHERE number = 1",
            ], planted: "number = 99, id = zeroblob(16), claimed = NULL"
        ) { store, attack in
            let bytes: [UInt8] =
                switch attack {
                case .changed, .reverted: firstTicket
                case .deleted: [UInt8](repeating: 2, count: 16)
                case .inserted: [UInt8](repeating: 0, count: 16)
                }
            let id = try #require(UploadTicketID(bytes))
            return fails { try store.uploadTicket(id) }
                && fails { try store.claimUploadTicket(id, at: 1_001) }
        }
    }

    /// A name is taken from nobody while a tombstone may be missing.
    private static var erasedName: Target {
        let hex = erased.map { String(format: "%02x", $0) }.joined()
        return Target(
            changes: [
                "UPDATE erased_name SET tombstone = zeroblob(32) WHERE tombstone = x'\(hex)'",
                "UPDATE erased_name SET app = 'other' WHERE tombstone = x'\(hex)'",
                "UPDATE erased_name SET row_tag = NULL WHERE tombstone = x'\(hex)'",
            ], victim: "tombstone = x'\(hex)'", ours: ["UPDATE erased_name SET tombstone = zeroblob(31)"],
            planted: "tombstone = zeroblob(32)", immediate: Set(Attack.allCases)
        ) { store, _ in try takes(name: "erased", leaving: erased, in: store) == false }
    }

    /// A delivery is signed if its row is authentic. What was deleted or put back is reported and holds back no
    /// other event: a receiver knows an event that it had by its id.
    private static var webhookDelivery: Target {
        Target(
            changes: [
                "UPDATE webhook_delivery SET body = x'5b5d' WHERE number = 1",
                "UPDATE webhook_delivery SET endpoint = 'w_2' WHERE number = 1",
                "UPDATE webhook_delivery SET event = 'evt_9' WHERE number = 1",
            ], victim: "number = 1",
            ours: [
                "UPDATE webhook_delivery SET account = 65 WHERE number = 1",
                "DELETE FROM webhook_delivery WHERE number = 1",
            ], planted: "number = 99"
        ) { store, attack in
            var taken: [Int64] = []
            while let next = try store.takeDelivery(dueAt: 9, leaving: [], for: 60) {
                taken.append(next.number)
            }
            for number in taken { try store.postponeDelivery(number, until: 1, because: "test") }
            switch attack {
            case .changed, .deleted: return taken == [2]
            case .inserted, .reverted: return taken == [1, 2]
            }
        }
    }

    private static let codeKey = AccountCodeKey(
        derivedFrom: Secret(copying: [UInt8](repeating: 1, count: 32).span))

    /// Whether one of the codes of account 1 is accepted; an error is no.
    private static func accepts(_ digits: String, in store: SQLStore) throws -> Bool {
        let attempt = AccountCodeAttempt(
            try #require(AccountCode(typed: digits)), for: .verify, of: 1, under: codeKey, at: 5)
        return (try? store.redeem(attempt) { _ in nil }) == .right
    }

    private static var accountCode: Target {
        let first = "digest = (SELECT min(digest) FROM account_code)"
        return Target(
            changes: [
                "UPDATE account_code SET expires = 99, tries = 4", "UPDATE account_code SET tries = 9",
                "UPDATE account_code SET digest = zeroblob(32)", "UPDATE account_code SET made = 0",
            ], victim: first,
            ours: ["UPDATE account_code SET tries = 1", "DELETE FROM account_code WHERE \(first)"],
            planted: "id = zeroblob(8), digest = zeroblob(32)", immediate: [.changed, .reverted, .deleted]
        ) { store, attack in
            // A row that was added is passed over. The others of the account stay good.
            guard attack != .inserted else { return try store.accountCodes(of: 1).count == 2 }
            return try ["11111111", "22222222"].allSatisfy { try !accepts($0, in: store) }
        }
    }

    private static var accountVerification: Target {
        Target(
            changes: [
                "UPDATE account_verification SET verified = 9",
                "UPDATE account_verification SET account = 65",
            ], victim: "account = 1",
            ours: ["UPDATE account_verification SET verified = 9", "DELETE FROM account_verification"],
            planted: "account = 2", immediate: Set(Attack.allCases)
        ) { store, attack in
            switch attack {
            case .inserted: try store.verification(of: 2) == nil
            case .changed: try store.verification(of: 1) == nil && store.verification(of: 65) == nil
            case .deleted, .reverted:
                fails { try store.verifyGroup(ofAccount: 1, in: [.accountVerification]) }
            }
        }
    }

    /// A missing value would be made anew.
    private static var meta: Target {
        Target(
            changes: [
                "UPDATE meta SET value = x'0104' WHERE name = 'bearer-key'",
                "UPDATE meta SET value = x'02' WHERE name = 'seal-slot'",
            ], victim: "name = 'bearer-key'",
            ours: [
                "UPDATE meta SET value = x'0103' WHERE name = 'bearer-key'",
                "DELETE FROM meta WHERE name = 'bearer-key'",
            ], planted: "name = 'tombstone-key', value = x'0101'", immediate: Set(Attack.allCases)
        ) { store, _ in
            fails { try store.value(of: .bearerKey) } && fails { try store.value(of: .tombstoneKey) }
                && fails { try store.setIfAbsent(.tombstoneKey, to: [1, 5]) }
        }
    }

    /// Whether the name can be taken; an error is no.
    private static func takes(name: String, leaving tombstone: [UInt8], in store: SQLStore) throws -> Bool {
        var draft = try StoreContract(store).accountDraft(name)
        draft.tombstones = AccountTombstones(name: AccountTombstone(tombstone), userID: nil)
        guard case .yes? = try? store.insert(draft, recording: .counting) else { return false }
        return true
    }

    private static func fails<Result>(_ body: () throws -> Result) -> Bool {
        do { _ = try body() } catch { return true }
        return false
    }

    /// Adds a second row of account 1 to each of its tables, and a tombstone.
    private func fill(_ store: SQLStore) throws {
        try TaggedStore.fill(store)
        let account = try #require(try store.account(1))
        let session = try StoreContract.session(7, of: account)
        guard case .yes = try StoreContract(store).open(session, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }
        for number in 1...2 as ClosedRange<UInt8> {
            let upload = UploadDescription(
                method: Array("PUT".utf8), authority: Array("shop.example".utf8), target: [0x2F],
                contentType: nil, length: 1, sha256: [UInt8](repeating: number, count: 32))
            let id = try #require(UploadTicketID([UInt8](repeating: number, count: 16)))
            let ticket = UploadTicketRecord(
                id: id, session: session.id, account: 1, release: try #require(KeyID("r_1")), upload: upload,
                created: 1_000, expires: 2_000)
            #expect(try store.add(ticket, within: UploadTicketBounds(ofSession: 9), at: 1_000) == .yes)
            guard number == 1 else { continue }
            #expect(try store.claimUploadTicket(id, at: 1_000) == .yes(attempt: 1))
        }
        try store.set(.bearerKey, to: [1, 2])
        for digits in ["11111111", "22222222"] {
            let code = Self.codeKey.stored(
                try #require(AccountCode(typed: digits)), for: .verify, of: 1, made: 1, until: 9)
            #expect(try store.add(code, of: 1, at: 1, recording: .counting) == .yes)
        }
        #expect(try store.set(verification: 3, of: 1, recording: .counting) == .yes)
        for event in ["evt_1", "evt_2"] {
            try store.add(
                WebhookDelivery(
                    number: 0, endpoint: "w_1", event: event, created: 1, attempts: 0,
                    body: Array("{}".utf8)))
        }
        try store.write { (database) throws(OperationalError) -> Void in
            try database.run(
                "INSERT INTO erased_name (app, tombstone) VALUES ('shop', ?)", binding: .blob(Self.erased))
        }
    }

    /// Makes the store, attacks it by `statements` after `ours`, and returns a store that opens it anew.
    private func attacked(
        _ table: AuthenticatedTable, _ attack: Attack, by statements: [String], after ours: String? = nil,
        body: (SQLStore, RowAuthenticator) throws -> Void
    ) throws {
        try TaggedStore.make { path, store in
            try fill(store)
            #expect(try TaggedStore.findings(path).findings == [])
            let database = try Database(path: path)
            try database.execute("CREATE TEMP TABLE kept AS SELECT * FROM \(table.name)")
            if let ours {
                try store.write { (database) throws(OperationalError) -> Void in
                    #expect(try database.run(ours) > 0)
                }
                #expect(try TaggedStore.findings(path).findings == [])
            }
            store.close()
            var count = 0
            for sql in statements { count = try database.run(sql) }
            #expect(count > 0)
            let rows = try #require(TaggedStore.makeRows())
            let victim = SQLStore(path: path, rows: rows)
            defer { victim.close() }
            try body(victim, rows)
        }
    }

    @Test("each attack on each table", arguments: AuthenticatedTable.all, Attack.allCases)
    func isRefusedAndReported(_ table: AuthenticatedTable, by attack: Attack) throws {
        let target = try #require(Self.targets()[table.name], "\(table.name): no case; add one")
        let name = table.name
        var attempts: [(sql: [String], ours: String?)] = []
        switch attack {
        case .changed: attempts = target.changes.map { ([$0], nil) }
        case .deleted: attempts = [(["DELETE FROM \(name) WHERE \(target.victim)"], nil)]
        case .inserted:
            attempts = [
                (
                    [
                        "DELETE FROM kept WHERE rowid <> (SELECT min(rowid) FROM kept)",
                        "UPDATE kept SET \(target.planted)", "INSERT INTO \(name) SELECT * FROM kept",
                    ], nil
                )
            ]
        case .reverted:
            attempts = target.ours.map {
                // The triggers of sealed values read `seal-slot`: it comes first.
                let order = table == .meta ? " ORDER BY name <> 'seal-slot'" : ""
                return (["DELETE FROM \(name)", "INSERT INTO \(name) SELECT * FROM kept\(order)"], $0)
            }
        }
        for attempt in attempts {
            try attacked(table, attack, by: attempt.sql, after: attempt.ours) { store, rows in
                if target.immediate.contains(attack) {
                    #expect(try target.refuses(store, attack), "\(attempt)")
                }
                let found = try store.verifyRows()
                #expect(found.findings.contains { $0.table == name }, "\(found.findings.map(\.text))")
                rows.note(found)
                #expect(try target.refuses(store, attack), "\(attempt)")
                #expect(rows.takeNews().contains { $0.hasPrefix(name) } && rows.counts.findings > 0)
            }
        }
    }

    @Test("nothing is refused without an attack", arguments: AuthenticatedTable.all)
    func isNotRefusedOtherwise(_ table: AuthenticatedTable) throws {
        let target = try #require(Self.targets()[table.name])
        try attacked(table, .changed, by: ["SELECT 1", "UPDATE kept SET row_tag = row_tag"]) { store, rows in
            rows.note(try store.verifyRows())
            // A used ticket is refused all the same, and an erased name, too.
            guard ![.uploadTicket, .erasedName].contains(table) else { return }
            #expect(try !target.refuses(store, .changed))
        }
    }

    @Test("erased names are verified before an account is added, as long as they are few")
    func manyErasedNames() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            let other = [UInt8](repeating: 0xE2, count: 32)
            #expect(try Self.takes(name: "eve", leaving: other, in: store))
            try store.write { (database) throws(OperationalError) -> Void in
                try database.run(
                    """
                    WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000)
                    INSERT INTO erased_name (app, tombstone) SELECT 'shop', randomblob(32) FROM count
                    """)
            }
            store.close()
            let database = try Database(path: path)
            #expect(
                try database.run("DELETE FROM erased_name WHERE tombstone = ?", binding: .blob(Self.erased))
                    == 1)
            let rows = try #require(TaggedStore.makeRows())
            let victim = SQLStore(path: path, rows: rows)
            rows.note(try victim.verifyRows())
            #expect(try !Self.takes(name: "mallory", leaving: Self.erased, in: victim))
            // An operator accepts them, and accounts can be added again.
            _ = try victim.tagAllRows()
            rows.note(try victim.verifyRows())
            #expect(try Self.takes(name: "trent", leaving: other, in: victim))
        }
    }

    @Test("the check is made once for all accounts of a transaction, and again in the next")
    func onceInATransaction() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            #expect(try Self.takes(name: "erased", leaving: Self.erased, in: store) == false)
            let database = try Database(path: path)
            #expect(try database.run("DELETE FROM erased_name") == 1)
            #expect(try Self.takes(name: "erased", leaving: Self.erased, in: store) == false)
        }
    }

    @Test("bytes that are written to the file itself leave no sign of a change, and are found")
    func writtenWithoutSQLite() throws {
        try TaggedStore.make { path, store in
            try fill(store)
            store.close()
            let database = try Database(path: path)
            _ = try database.rows("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) }
            #expect(try store.verifyRows().findings == [])
            let mark = try store.changeMark()
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            let place = try #require(bytes.range(of: Data("window9s".utf8)))
            bytes.replaceSubrange(place, with: Data("window8s".utf8))
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.write(contentsOf: bytes)
            #expect(try store.changeMark() == mark)
            #expect(try store.verifyRows().findings.map(\.table) == ["app_setting"])
            #expect(try database.run("UPDATE app SET created = created + 1") == 1)
            #expect(try store.changeMark() != mark)
            try file.close()
        }
    }
}
