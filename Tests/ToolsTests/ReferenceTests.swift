import CountersignAuthority
import CountersignLab
import CountersignServer
import CountersignWire
import Foundation
import Testing

@testable import CountersignCLI
@testable import countersign_lab

/// The pages of docs that list what the code has, list exactly that; and whatever is declared is also
/// registered. A failure names the step of CONTRIBUTING.md that was left out.
@Suite struct ReferenceTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    private static func text(of path: String) throws -> String {
        try String(contentsOfFile: "\(root)/\(path)", encoding: .utf8)
    }

    /// The Swift sources below a folder.
    private static func sources(below folder: String) throws -> String {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: "\(root)/\(folder)")
        return try paths.filter { $0.hasSuffix(".swift") }.map { try text(of: "\(folder)/\($0)") }.joined()
    }

    /// A table between the lines `<!-- NAME: … -->` and `<!-- end of NAME -->` of a page.
    struct Table: Sendable, CustomTestStringConvertible {
        let name: String
        let page: String
        let step: String
        let columns: [String]
        let rows: [[String]]

        var testDescription: String { name }

        var lines: String {
            let all = [columns, columns.map { _ in "---" }] + rows
            let cells = all.map { row in
                row.map { $0.replacingOccurrences(of: "|", with: "\\|") }.joined(separator: " | ")
            }
            return cells.map { "| \($0) |" }.joined(separator: "\n")
        }
    }

    static let tables = [
        Table(
            name: "commands", page: "docs/commands.md", step: "step 3 of \"Add a command\"",
            columns: ["command", "does"], rows: Tool.commands.map { ["`\($0.name)`", $0.summary] }),
        Table(
            name: "policy keys", page: "docs/operate/policy-keys.md", step: "step 4 of \"Add a policy key\"",
            columns: ["key and values", "default", "meaning"],
            rows: PolicyKey.all.map { ["`\($0.name)=\($0.value)`", $0.fallback, $0.meaning] }),
        Table(
            name: "settings", page: "docs/operate/settings.md", step: "step 3 of \"Add a setting\"",
            columns: ["setting", "default", "unit", "applied by", "same for", "meaning", "values"],
            rows: Setting.all.map {
                [
                    "`\($0.flag)`", $0.fallback, $0.unit, $0.effectText, $0.scope.rawValue, $0.meaning,
                    $0.expected,
                ]
            }),
        Table(
            name: "endings", page: "docs/operate/backup.md", step: "\"What ends again\"",
            columns: ["ended by", "after a restore"],
            rows: AuditAction.allCases.filter { $0.afterRestoration != .nothing }.map {
                ["`\($0.rawValue)`", $0.afterRestoration.text]
            }),
        Table(
            name: "attacks", page: "docs/lab.md", step: "step 4 of \"Add an attack\"",
            columns: ["attack", "column", "the attacker"],
            rows: AttackCatalogue.all.map { ["`\($0.name)`", "`\($0.column.rawValue)`", $0.sentence] }),
    ]

    /// With `COUNTERSIGN_WRITE_TABLES=1`, writes the tables instead of comparing them.
    @Test("the page has the table of what the code has", arguments: tables)
    func page(_ table: Table) throws {
        var page = try Self.text(of: table.page)
        let begin = try #require(page.range(of: "<!-- \(table.name): generated -->\n"))
        let end = try #require(page.range(of: "\n<!-- end of \(table.name) -->"))
        if ProcessInfo.processInfo.environment["COUNTERSIGN_WRITE_TABLES"] == "1" {
            page.replaceSubrange(begin.upperBound..<end.lowerBound, with: table.lines)
            try page.write(toFile: "\(Self.root)/\(table.page)", atomically: true, encoding: .utf8)
        } else {
            #expect(
                page[begin.upperBound..<end.lowerBound] == table.lines,
                "\(table.step) in CONTRIBUTING.md: COUNTERSIGN_WRITE_TABLES=1 swift test --filter ReferenceTests"
            )
        }
    }

    @Test func everyDeclaredCommandIsRegistered() throws {
        let declared = try Self.sources(below: "Sources/CLI").matches(
            of: #/words: \[((?:"[a-z-]+"(?:, )?)+)\]/#
        )
        .map { String($0.1).replacing(", ", with: " ").replacing("\"", with: "") }
        #expect(declared.count > 40)
        #expect(
            Set(declared).subtracting(Tool.commands.map(\.name)).isEmpty,
            "step 2 of \"Add a command\" in CONTRIBUTING.md: list it in Tool.commands")
    }

    @Test("each policy key is in the help of `app policy`", arguments: PolicyKey.all.map(\.name))
    func helpOfPolicy(_ name: String) throws {
        let key = try PolicyKey.named(name)
        #expect(Help.text(of: .appPolicy).contains("  \(key.name)=\(key.value)\n      \(key.meaning)"))
        #expect(PolicyKey.all.count { $0.name == name } == 1)
    }

    @Test func everyDeclaredAttackIsRegistered() throws {
        let declared = try Self.sources(below: "Tools/Lab/Attacks").matches(of: #/AttackName = "([a-z-]+)"/#)
            .map { String($0.1) }
        #expect(
            declared.sorted() == AttackCatalogue.all.map(\.name.description).sorted(),
            "step 2 of \"Add an attack\" in CONTRIBUTING.md: list it in AttackCatalogue.all")
    }

    @Test func everyAttackHasAVerdictInEachRow() throws {
        let matrix = try ExpectedMatrix(reading: Array(Self.text(of: "Vectors/lab/matrix.json").utf8))
        let rows = RowCatalogue.all.map(\.name)
        #expect(Set(matrix.rows.keys) == Set(rows))
        let missing = AttackCatalogue.all.map(\.name).filter { attack in
            rows.contains { matrix.rows[$0]?[attack] == nil }
        }
        #expect(
            missing.isEmpty,
            "step 5 of \"Add an attack\" in CONTRIBUTING.md: script/lab --accept --attack NAME")
    }

    @Test("the page explains each column of the matrix", arguments: Column.allCases)
    func columns(_ column: Column) throws {
        let page = try Self.text(of: "docs/lab.md")
        #expect(
            page.contains("\n| `\(column.rawValue)` | "), "step 3 of \"Add an attack\" in CONTRIBUTING.md")
    }
}
