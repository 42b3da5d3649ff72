import CountersignWire
import Testing

@testable import CountersignLab

/// A record has the verdicts of a run, and is read back as it was written; anything else is refused.
@Suite struct LabRecordTests {
    private static let report = SampleMatrix.report([
        SampleMatrix.row(
            "md5", [SampleMatrix.fell, SampleMatrix.held, SampleMatrix.fell, SampleMatrix.notApplicable]),
        SampleMatrix.row(
            "countersign", [SampleMatrix.held, SampleMatrix.fell, SampleMatrix.fault, SampleMatrix.held]),
    ])
    private static let record = LabRecord(report)
    private static let text = record.json.text

    @Test func itHasTheMarksOfTheRun() throws {
        let matrix = Self.report.matrix
        for (row, recorded) in zip(matrix.rows, Self.record.rows) {
            #expect(recorded.name == row.name)
            #expect(recorded.marks == matrix.attacks.map { Mark(row.cells[$0.name]) })
            for column in matrix.columns {
                #expect(Self.record.mark(of: recorded, in: column) == matrix.mark(for: row, in: column))
            }
        }
        #expect(Self.record.columns == matrix.columns)
        for mark in Mark.allCases { #expect(Self.record.count(of: mark) == matrix.tally[mark]) }
        #expect(Self.record.broken.map(\.attack) == matrix.broken.map(\.attack))
        #expect(try LabRecord(reading: Self.record.json.bytes) == Self.record)
        #expect(try LabRecord(reading: Array(Self.record.json.prettyText.utf8)) == Self.record)
    }

    /// What led to a verdict stays out: it has what was sent.
    @Test func itHasNoStories() {
        #expect(!Self.text.contains("steps") && !Self.text.contains("250 went"))
    }

    @Test(arguments: [
        ("\"version\":", "\"edition\":"), ("\"began\":", "\"began\":-"),
        ("\"seconds\":", "\"seconds\":\"x\",\"s\":"),
        ("\"column\":\"", "\"column\":\"no-"), ("\"cells\":{", "\"cells\":{\"x\":\"H\","),
        ("\"scheme\":\"", "\"scheme\":\"<b>"), ("\"not_run\":[", "\"not_run\":[{}"),
        ("\"H\"", "\"h\""), ("countersign", "md5"), ("tamper-path", "tamper-body"),
    ])
    func whatIsNoRecordIsRefused(part: String, replacement: String) throws {
        let altered = Self.text.replacing(part, with: replacement, maxReplacements: 1)
        try #require(altered != Self.text)
        #expect(throws: OperationalError.self) { try LabRecord(reading: Array(altered.utf8)) }
    }

    @Test func oneThatIsLongIsRefused() {
        let long = Self.text + String(repeating: " ", count: LabRecord.mostBytes)
        #expect(throws: OperationalError.self) { try LabRecord(reading: Array(long.utf8)) }
        #expect(throws: OperationalError.self) { try LabRecord(reading: Array(Self.text.dropLast().utf8)) }
    }
}
