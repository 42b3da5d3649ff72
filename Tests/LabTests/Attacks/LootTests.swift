import CSQLite
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignLab

/// The search of stolen data without knowledge of the schema: which values it finds and the order of its
/// attempts.
@Suite struct LootTests {
    private let loot = StolenData([
        StolenData.Record(place: "states 1", values: [Array("active".utf8)]),
        StolenData.Record(place: "tokens 1", values: [Array("deadbeefdeadbeef".utf8), Array("1007".utf8)]),
        StolenData.Record(place: "tokens 2", values: [Array("cafecafecafecafe".utf8), Array("1008".utf8)]),
        StolenData.Record(
            place: "users 1", values: [Array("1007".utf8), Array("anna".utf8), Array("sunny42".utf8)]),
    ])

    @Test func whatConcernsAUserComesFirst() {
        #expect(loot.records(concerning: "anna").map(\.place) == ["users 1", "tokens 1"])
        #expect(loot.ranked(by: "anna").map(\.place) == ["users 1", "tokens 1", "states 1", "tokens 2"])
        #expect(loot.records(concerning: "nobody").isEmpty)
    }

    @Test func numbersMayBeUsers() {
        #expect(loot.records[3].numbers == ["1007"])
        #expect(loot.records[1].tokens.contains { $0.token == "deadbeefdeadbeef" && $0.userID == "1007" })
    }

    @Test(arguments: [
        ("sunny42", "sunny42"), ("c3Vubnk0Mg==", "sunny42"), ("73756e6e793432", "sunny42"),
        (#"{"userPwdKey":"sunny42"}"#, "sunny42"), ("\u{1}\u{0}*sunny42\u{2}", "sunny42"),
        ("a b&c=sunny42", "sunny42"),
    ])
    func textIsReadInAllItsForms(value: String, text: String) {
        let found = ValueInterpreter.texts(in: Array(value.utf8))
        #expect(found.contains(text) || found.contains { $0.hasSuffix("=\(text)") })
    }

    @Test func bytesAreReadAsTokensAndKeys() {
        let bytes = [UInt8](0..<32)
        #expect(ValueInterpreter.texts(in: bytes).contains(Base64.encode(bytes.span, as: .url)))
        #expect(ValueInterpreter.keys(in: Array(Hex.encode(bytes.span).utf8)).contains(bytes))
        #expect(ValueInterpreter.keySizedSlices(of: [1, 2] + bytes + [3]).contains(bytes))
        #expect(ValueInterpreter.keySizedSlices(of: bytes).isEmpty)
        #expect(ValueInterpreter.keys(in: [1, 2, 3]).isEmpty)
    }

    @Test func aDatabaseIsReadWithoutItsSchema() throws {
        let folder = try Files.makeTemporaryFolder("loot-tests")
        defer { Files.removeFolder(folder) }
        var handle: OpaquePointer?
        #expect(sqlite3_open("\(folder)/any.db", &handle) == SQLITE_OK)
        let sql = """
            CREATE TABLE "o""dd"(n INTEGER, t TEXT, b BLOB, gone TEXT);
            INSERT INTO "o""dd" VALUES(7, 'anna', x'00ff', NULL), (8, 'ben', x'', NULL);
            """
        #expect(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(handle)
        let loot = try StolenData(databases: ["\(folder)/any.db"])
        #expect(
            loot.records.map(\.values) == [
                [[0x38], Array("ben".utf8), []], [[0x37], Array("anna".utf8), [0, 255]],
            ])
        #expect(throws: LabError.self) { try StolenData(databases: ["\(folder)/none.db/no"]) }
    }

    @Test func aBackupIsReadFileByFile() throws {
        let folder = try Files.makeTemporaryFolder("loot-tests")
        defer { Files.removeFolder(folder) }
        try Files.makeFolder("\(folder)/device")
        try Files.makeFolder("\(folder)/device/inner")
        try Files.write(
            Array(#"{"userNameKey":"anna","userPwdKey":"sunny42"}"#.utf8), to: "\(folder)/device/a.json")
        try Files.write([0, 1, 2], to: "\(folder)/device/inner/b")
        let loot = try StolenData(backupOf: "\(folder)/device", into: "\(folder)/copy")
        #expect(loot.records.map(\.place) == ["a.json", "inner/b"])
        #expect(loot.records[0].values == [Array("anna".utf8), Array("sunny42".utf8)])
        #expect(try Files.read("\(folder)/copy/inner/b") == [0, 1, 2])
    }
}
