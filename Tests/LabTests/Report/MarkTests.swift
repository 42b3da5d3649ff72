import CountersignLab
import Testing

@Suite struct MarkTests {
    @Test(
        "a column's letter is the worst of its attacks'",
        arguments: [
            ([Mark.held, .fell, .notStaged, .notApplicable], Mark.fell), ([.held, .notStaged], .notStaged),
            ([.notApplicable, .held], .held), ([.notApplicable], .notApplicable), ([], nil),
        ])
    func worst(_ row: (marks: [Mark], worst: Mark?)) { #expect(Mark.worst(row.marks) == row.worst) }

    @Test func whatWasNotRunHasNotHeld() {
        #expect(Mark(nil) == .notStaged)
        #expect(Mark(SampleMatrix.fault) == .notStaged)
    }

    @Test func columnsAreThoseWithAttacks() {
        let matrix = SampleMatrix.mixed.matrix
        #expect(matrix.columns == [.eavesdrop, .tamper, .replay])
        #expect(
            matrix.rows.map { row in matrix.columns.map { matrix.mark(for: row, in: $0).rawValue }.joined() }
                == [
                    "FF–", "H!H", "HHH",
                ])
    }

    @Test func cellsAreCounted() {
        let tally = SampleMatrix.mixed.matrix.tally
        #expect(tally.executed == 10)
        #expect(Mark.allCases.map { tally[$0] } == [2, 1, 8, 1])
        #expect(tally.sentence.hasSuffix("1 could not be staged"))
    }

    @Test func whatWasSelectedAndNotRunIsAFault() {
        let matrix = Matrix(
            rows: [SampleMatrix.row("md5", [nil, SampleMatrix.held])], attacks: SampleMatrix.attacks)
        #expect(matrix.tally[.notStaged] == 3)
        #expect(matrix.faults.map(\.attack) == ["eavesdrop", "tamper-body", "replay-at-once"])
    }

    @Test func onlyOurOwnRowsMustNotFall() {
        let fell = Array(repeating: SampleMatrix.fell as Result<Cell, LabError>?, count: 4)
        let rows: [RowName] = ["md5", "message-signatures-password", "countersign", "countersign-no-tls"]
        let matrix = Matrix(rows: rows.map { SampleMatrix.row($0, fell) }, attacks: SampleMatrix.attacks)
        #expect(Set(matrix.broken.map(\.row)) == ["countersign", "countersign-no-tls"])
        #expect(SampleMatrix.mixed.matrix.broken.isEmpty)
    }
}
