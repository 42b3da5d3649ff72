import CountersignLab
import Testing

@Suite struct TextTests {
    private static func lines(_ report: LabReport, _ style: TerminalPainter.Style = .plain) -> [Substring] {
        MatrixText(report, style: style).text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    @Test func theTable() {
        let lines = Self.lines(SampleMatrix.mixed)
        #expect(
            lines.prefix(6) == [
                "             eavesdrop", "             │   tamper", "             │   │   replay",
                "md5          F   F   –", "md5+gateway  H   !   H", "countersign  H   H   H",
            ])
        #expect(lines.contains("  md5+gateway tamper-body: the server did not start"))
        #expect(
            lines.last
                == "10 attacks carried out: 8 held, 2 fell; 1 do not apply; 1 could not be staged. 3 min 12 s"
        )
    }

    /// All rows and columns, each line at its longest.
    @Test func theWholeTableFits() {
        let attacks = Column.allCases.map { SampleAttack(AttackName($0.rawValue), $0) }
        let rows = RowCatalogue.all.map { Matrix.Row(name: $0.name, summary: $0.summary) }
        let widest = Self.lines(SampleMatrix.report(rows, attacks)).prefix(Column.allCases.count + rows.count)
        #expect(widest.allSatisfy { $0.count <= 120 })
        #expect(widest.count == Column.allCases.count + rows.count)
    }

    @Test func coloursAreForTerminals() {
        #expect(!MatrixText(SampleMatrix.mixed, style: .plain).text.contains("\u{1B}"))
        let coloured = MatrixText(SampleMatrix.mixed, style: .coloured).text
        for code in ["1;31mF", "32mH", "2m–", "1;33m!"] {
            #expect(coloured.contains("\u{1B}[\(code)\u{1B}[0m"))
        }
        let bare = coloured.replacing(#/\x{1B}\[[0-9;]*m/#, with: "")
        #expect(bare == MatrixText(SampleMatrix.mixed, style: .plain).text)
    }

    @Test func whatHasOneReasonIsOneLine() {
        let fault = SampleMatrix.fault
        let report = SampleMatrix.report([
            SampleMatrix.row("md5", [fault, fault, fault, fault]),
            SampleMatrix.row("sigv4", [fault, nil, fault, SampleMatrix.held]),
        ])
        let lines = Self.lines(report)
        #expect(lines.contains("  md5 4 attacks: the server did not start"))
        #expect(lines.contains("  sigv4 eavesdrop, tamper-body: the server did not start"))
        #expect(lines.contains("  sigv4 tamper-path: was not run"))
    }

    @Test func oneRowSaysHow() {
        let long = Result<Cell, LabError>.success(
            Cell(.held, how: Array(repeating: "how", count: 60).joined(separator: " ")))
        let report = SampleMatrix.report([
            SampleMatrix.row(
                "md5", [SampleMatrix.fell, long, SampleMatrix.fault, SampleMatrix.notApplicable])
        ])
        let lines = Self.lines(report)
        #expect(lines[0] == "md5  a scheme")
        #expect(lines[1] == "  F  eavesdrop       250 went to the thief")
        #expect(lines.contains("  !  tamper-body     the server did not start"))
        #expect(lines.allSatisfy { $0.count <= 120 })
        #expect(lines.contains { $0.hasPrefix("                     how how") })
    }

    @Test func oneAttackSaysHow() {
        let report = SampleMatrix.report(SampleMatrix.mixed.matrix.rows, [SampleMatrix.attacks[1]])
        let lines = Self.lines(report)
        #expect(lines[0] == "tamper-path  Does harm.")
        #expect(lines[2] == "  H  md5+gateway  refused: replayed")
    }

    @Test func whatATerminalWouldObeyIsWrittenOut() {
        let cell = Result<Cell, LabError>.success(Cell(.fell, how: "read \u{1B}[2Jsecret"))
        let report = SampleMatrix.report([SampleMatrix.row("countersign", [cell, cell, cell, cell])])
        #expect(!MatrixText(report, style: .plain).text.contains("\u{1B}"))
        #expect(MatrixText(report, style: .plain).text.contains("read \\u001b[2Jsecret"))
        #expect(MatrixText(report, style: .plain).text.contains("our own fell"))
    }
}
