import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import StoreContract
import Testing

@testable import CountersignSQL

/// A table that was put back to an earlier state together with its digest stays refused: neither changes of
/// ours nor the later state make it whole, until the rows are accepted.
@Suite struct EarlierTableTests {
    private static let putBackDigest = """
        UPDATE row_digest SET value = (SELECT value FROM temp.digests WHERE name = 'session')
            WHERE name = 'session';
        """
    private static let putBackRows = "DELETE FROM session; INSERT INTO session SELECT * FROM temp.sessions;"

    /// A connection of another program, which has kept the sessions and the digests.
    private func keeper(of path: String) throws -> Database {
        let database = try Database(path: path)
        try database.execute(
            """
            CREATE TEMP TABLE sessions AS SELECT * FROM session;
            CREATE TEMP TABLE digests AS SELECT * FROM row_digest;
            """)
        return database
    }

    /// Sessions of the account, with these numbers; each is a change of the table.
    private func signIn(_ numbers: Range<Int>, to store: SQLStore) throws {
        let account = try #require(try store.account(2))
        for number in numbers {
            _ = try StoreContract(store).open(StoreContract.session(number, of: account), .unlimited)
        }
    }

    /// An operator ends one of them.
    private func end(_ number: Int, in store: SQLStore) throws {
        _ = try store.end(
            .one(StoreContract.id(number)), with: SessionTermination(.revoked, at: 9), recording: nil)
    }

    @Test("as many changes as the table lacks do not make it whole", arguments: 1...3)
    func laterChanges(_ missing: Int) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            try signIn(10..<16, to: store)
            let other = try keeper(of: path)
            try signIn(20..<20 + missing, to: store)
            try other.execute(Self.putBackRows + Self.putBackDigest)
            for number in 0..<missing + 2 {
                #expect(try TaggedStore.findings(path).findings == [.putBack(table: "session")])
                try end(10 + number, in: store)
            }
            // An operator accepts the rows as they are.
            _ = try store.tagAllRows()
            #expect(try TaggedStore.findings(path).findings == [])
            try signIn(30..<31, to: store)
            #expect(try TaggedStore.findings(path).findings == [])
        }
    }

    @Test("the table of another history, which has changed as often, does not fit")
    func otherHistory() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            try signIn(10..<12, to: store)
            let other = try keeper(of: path)
            try end(10, in: store)
            let later = try keeper(of: path)
            // All that the change has changed is put back, and another one is made.
            try other.execute(
                Self.putBackRows
                    + "DELETE FROM row_digest; INSERT INTO row_digest SELECT * FROM temp.digests")
            #expect(try TaggedStore.findings(path).findings == [])
            try end(11, in: store)
            #expect(try TaggedStore.findings(path).findings == [])
            try later.execute(Self.putBackRows + Self.putBackDigest)
            #expect(try TaggedStore.findings(path).findings == [.putBack(table: "session")])
        }
    }

    @Test(
        "what is changed while the digest is not the summary's cannot be undone unseen",
        arguments: [
            "UPDATE row_digest SET value = zeroblob(100) WHERE name = 'session'",
            "DELETE FROM row_digest WHERE name = 'session'",
        ])
    func changesMeanwhile(_ damage: String) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let other = try keeper(of: path)
            try other.execute(damage)
            _ = try store.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
            try other.execute(
                Self.putBackRows + "DELETE FROM row_digest WHERE name = 'session';"
                    + "INSERT INTO row_digest SELECT * FROM temp.digests WHERE name = 'session'")
            #expect(try TaggedStore.findings(path).findings == [.putBack(table: "session")])
        }
    }

    @Test("without the summary nothing is changed")
    func withoutSummary() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            store.close()
            for damage in ["UPDATE row_digest SET value = x'00'", "DELETE FROM row_digest"] {
                #expect(try Database(path: path).run("\(damage) WHERE name = 'all'") == 1)
                let opened = SQLStore(path: path, rows: try #require(TaggedStore.rows))
                let fault = #expect(throws: OperationalError.self) {
                    try opened.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
                }
                #expect(fault?.message.contains("summary") == true)
                #expect(try opened.sessions(of: 1).count == 1)
                _ = try opened.tagAllRows()
                #expect(try opened.verifyRows().findings == [])
                opened.close()
            }
        }
    }

    /// A record whose tag is `tag`.
    private static func record(_ tag: UInt8) -> AuditDraft {
        AuditDraft { head in
            let number = (head?.first ?? 0) + 1
            let (record, tag) = (Array("\(number)".utf8), [UInt8](repeating: tag, count: 32))
            return (AuditRow(number: Int64(number), record: record, tag: tag), [number])
        }
    }

    @Test("as many records as an earlier audit log lacks do not make it the tables'", arguments: [1, 2])
    func laterRecords(_ missing: Int) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let app = try #require(AppName("shop"))
            func change(_ tag: Int) throws {
                _ = try store.change(
                    app, applying: [("window", .text("\(tag)s"))], recording: Self.record(UInt8(tag)))
            }
            try change(10)
            let other = try Database(path: path)
            let kept = try #require(try other.integer("SELECT max(number) FROM audit"))
            try other.execute(
                """
                CREATE TEMP TABLE head AS SELECT value FROM meta WHERE name = 'audit-head';
                DROP TRIGGER audit_is_not_cut;
                """)
            for number in 0..<missing { try change(20 + number) }
            #expect(try TaggedStore.findings(path).findings == [])
            try other.execute(
                """
                DELETE FROM audit WHERE number > \(kept);
                UPDATE meta SET value = (SELECT value FROM temp.head) WHERE name = 'audit-head';
                """)
            for number in 0..<missing + 2 {
                let found = try store.verifyRows().findings
                guard case .otherLog? = found.first else {
                    Issue.record("the log passes for the former after \(number) records")
                    return
                }
                try change(30 + number)
            }
            _ = try store.tagAllRows()
            try change(50)
            #expect(try store.verifyRows().findings.filter { $0.table == "all" } == [])
        }
    }
}
