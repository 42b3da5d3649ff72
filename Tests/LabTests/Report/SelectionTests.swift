import CountersignLab
import Testing

@Suite struct SelectionTests {
    private static func select(_ rows: [String], _ attacks: [String]) throws -> (
        rows: [String], attacks: [String]
    ) {
        let selection = try Selection(
            rows: rows, attacks: attacks, allRows: RowCatalogue.all, allAttacks: SampleMatrix.attacks)
        return (selection.rows.map(\.name.description), selection.attacks.map(\.name.description))
    }

    @Test(
        "rows",
        arguments: [
            (["md5"], ["md5"]), (["md5*"], ["md5", "md5+gateway", "md5-salt", "md5-salt+gateway"]),
            (["sigv4,md5"], ["md5", "sigv4"]), (["sigv4", "md5", "md5"], ["md5", "sigv4"]),
            (["*-v2*"], ["auth-v2", "auth-v2+gateway"]), (["md5*way"], ["md5+gateway", "md5-salt+gateway"]),
        ])
    func rows(_ row: (words: [String], names: [String])) throws {
        #expect(try Self.select(row.words, []).rows == row.names)
    }

    @Test(
        "attacks, by name or by column",
        arguments: [
            (["tamper"], ["tamper-path", "tamper-body"]), (["tamper-body"], ["tamper-body"]),
            (["replay,eavesdrop"], ["eavesdrop", "replay-at-once"]), (["*-body"], ["tamper-body"]),
        ])
    func attacks(_ row: (words: [String], names: [String])) throws {
        #expect(try Self.select([], row.words).attacks == row.names)
    }

    @Test func withoutWordsItIsAll() throws {
        let all = try Self.select([], [])
        #expect(all.rows == RowCatalogue.all.map(\.name.description))
        #expect(all.attacks.count == 4)
    }

    @Test("words that name nothing", arguments: ["md6", "md5,", "", "MD5", "md5 "])
    func unknown(_ word: String) {
        let error = #expect(throws: SelectionError.self) { try Self.select([word], []) }
        #expect(error?.kind == .row)
        #expect(error?.known.contains("md5") == true)
        #expect(throws: SelectionError.self) { try Self.select([], [word]) }
    }

    @Test func namesAreUnique() {
        let rows = RowCatalogue.all.map(\.name)
        #expect(Set(rows).count == rows.count)
        let attacks = AttackCatalogue.all.map(\.name)
        #expect(Set(attacks).count == attacks.count)
    }
}
