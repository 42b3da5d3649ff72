import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct BrokenTests {
    private typealias Found = Result<Cell, LabError>

    private static let fell = Found.success(Cell(.fell, how: "money moved"))
    private static let held = Found.success(Cell(.held, how: "refused"))
    private static let exempt = Found.success(Cell(.notApplicable, how: "nothing there"))
    private static let unstaged = Found.failure(LabError("no server"))

    @Test func aFaultIsCaughtOnlyByAnAttackThatFailsWithoutIt() {
        for (broken, whole, verdict) in [
            (BrokenTests.fell, BrokenTests.held, .caught), (BrokenTests.held, BrokenTests.held, .missed),
            (BrokenTests.exempt, BrokenTests.exempt, .missed),
            (BrokenTests.fell, BrokenTests.fell, .meaningless),
            (BrokenTests.fell, BrokenTests.exempt, .meaningless),
            (BrokenTests.unstaged, BrokenTests.held, .unstaged),
            (BrokenTests.fell, BrokenTests.unstaged, .unstaged),
        ] as [(Found, Found, BrokenServerResult.Verdict)] {
            #expect(
                BrokenServerResult(BrokenServer.all[0], broken: broken, whole: whole).verdict == verdict)
        }
    }

    @Test func everyFaultIsAttackedOnARowThatThereIsByAnAttackThatThereIs() {
        let rows = Set(RowCatalogue.all.map(\.name))
        let attacks = Set(AttackCatalogue.all.map(\.name))
        for server in BrokenServer.all {
            #expect(rows.contains(server.row), "\(server.fault): no row \(server.row)")
            #expect(attacks.contains(server.attack), "\(server.fault): no attack \(server.attack)")
        }
        #expect(Set(BrokenServer.all.map { "\($0.fault) \($0.attack)" }).count == BrokenServer.all.count)
        #expect(BrokenServer.all.count >= 12)
    }

    /// An attack that succeeds nowhere may be unable to succeed.
    @Test func everyAttackBreaksARowOrABrokenServer() throws {
        let path = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let expected = try JSONReader.read(Files.read("\(path)/Vectors/lab/matrix.json"))
        let rows = try #require(expected.root["rows"]?.elements)
        for attack in AttackCatalogue.all {
            let falls = rows.contains { $0["cells"]?[attack.name.description]?["verdict"]?.string == "F" }
            #expect(
                falls || BrokenServer.all.contains { $0.attack == attack.name },
                "\(attack.name) breaks nothing: step 6 of \"Add an attack\" in CONTRIBUTING.md")
        }
    }

    @Test func theTableSaysWhatCaughtEachAndTheDocumentTheSame() throws {
        let findings = [
            BrokenServerResult(BrokenServer.all[0], broken: BrokenTests.fell, whole: BrokenTests.held),
            BrokenServerResult(BrokenServer.all[1], broken: BrokenTests.held, whole: BrokenTests.held),
        ]
        let lines = findings.text.split(separator: "\n")
        #expect(lines[0].hasPrefix("✓ nonce-unchecked "))
        #expect(lines[0].hasSuffix("replay-at-once on \(BrokenServer.all[0].row): money moved"))
        #expect(lines[1].hasPrefix("✗ nonce-before-signature "))
        #expect(lines.last == "1 of 2 broken servers caught")
        let document = try JSONReader.read(Array(findings.json.text.utf8))
        #expect(
            document.root["broken"]?.elements?.compactMap { $0["verdict"]?.string } == [
                "caught", "missed",
            ])
    }
}
