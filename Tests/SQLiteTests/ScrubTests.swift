import CSQLite
import CountersignAuthority
import CountersignWire
import Foundation
import Testing

@testable import CountersignSQL

/// A scrub finds texts in the parts of the file that no row uses, and writes the file anew for those alone.
@Suite struct ScrubTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
        "countersign-\(UUID().uuidString)"
    ).path
    private let path: String

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        path = folder + "/countersign.db"
        try SQLStore(path: path).prepare()
    }

    /// Runs statements as a version without `secure_delete`, in the file itself.
    private func execute(_ sql: String) throws {
        var database: OpaquePointer?
        try #require(sqlite3_open(path, &database) == SQLITE_OK)
        defer { sqlite3_close(database) }
        let all = "PRAGMA secure_delete = OFF; \(sql); PRAGMA wal_checkpoint(TRUNCATE)"
        try #require(sqlite3_exec(database, all, nil, nil, nil) == SQLITE_OK)
    }

    /// Changes with each `VACUUM`.
    private func layout() throws -> Int64? { try Database(path: path).integer("PRAGMA schema_version") }

    private func scrub(_ texts: String..., rewriting: RewriteBound = .ifSmall) throws -> ScrubOutcome {
        try SQLStore(path: path).scrub(texts.map { Array($0.utf8) }, rewriting: rewriting)
    }

    @Test(
        "texts in free pages, free blocks and between cells are found, and gone afterwards",
        arguments: [
            (what: "free pages", filler: 3_000, gone: "number <= 100"),
            (what: "free blocks", filler: 20, gone: "number = 50"),
            (what: "between the cells' places and the cells", filler: 72, gone: "number = 100"),
            (what: "overflow pages", filler: 20_000, gone: "number = 3"),
        ])
    func remains(_ row: (what: String, filler: Int, gone: String)) throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try execute(
            """
            CREATE TABLE crowd (number INTEGER PRIMARY KEY, text TEXT) STRICT;
            WITH RECURSIVE number(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < 100)
            INSERT INTO crowd
                SELECT value, hex(zeroblob(\(row.filler / 2))) || 'row-' || value || '-of-wilhelmina' FROM number
            """)
        try execute("DELETE FROM crowd WHERE \(row.gone)")
        let number = row.gone.split(separator: " ").last.flatMap { Int($0) } ?? 0
        let text = "row-\(number)-of-wilhelmina"
        let before = try layout()
        guard case .inUnusedParts(let bytes) = try scrub("row-absent", text, rewriting: .upTo(0)) else {
            Issue.record("not found: \(row.what)")
            return
        }
        #expect(bytes > 0)
        #expect(try layout() == before, "it is not asked for")
        #expect(try scrub("row-absent", text) == .absent)
        #expect(try layout() != before)
    }

    @Test("a text that only rows have, as a short name, does not have the file written anew")
    func rows() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try execute(
            """
            CREATE TABLE crowd (number INTEGER PRIMARY KEY, text TEXT) STRICT;
            CREATE INDEX crowd_text ON crowd (text);
            WITH RECURSIVE number(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < 500)
            INSERT INTO crowd SELECT value, 'alice-' || value || hex(zeroblob((value % 50) * 100)) FROM number
            """)
        // Where rows moved from page to page there are copies, which are removed once.
        #expect(try scrub("al") == .inRows)
        let before = try layout()
        #expect(try scrub("al") == .inRows)
        #expect(try scrub("alice-77") == .inRows)
        #expect(try scrub("bob", "") == .absent)
        #expect(try layout() == before)
    }
}
