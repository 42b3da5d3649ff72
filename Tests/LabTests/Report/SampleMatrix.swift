@testable import CountersignLab

/// An attack that is never run, for a column head.
struct SampleAttack: Attack {
    let name: AttackName
    let column: Column
    let sentence: String

    init(_ name: AttackName, _ column: Column, _ sentence: String = "Does harm.") {
        self.name = name
        self.column = column
        self.sentence = sentence
    }

    func exemption(of row: RowProfile) -> String? { nil }
    func run(on stage: Stage) async throws -> AttackOutcome { throw LabError("never run") }
}

/// Reports with fixed cells, to test their output.
enum SampleMatrix {
    static let attacks: [any Attack] = [
        SampleAttack("eavesdrop", .eavesdrop), SampleAttack("tamper-path", .tamper),
        SampleAttack("tamper-body", .tamper), SampleAttack("replay-at-once", .replay),
    ]

    static let fell = Result<Cell, LabError>.success(Cell(.fell, how: "250 went to the thief"))
    static let held = Result<Cell, LabError>.success(Cell(.held, how: "refused: replayed"))
    static let notApplicable = Result<Cell, LabError>.success(Cell(.notApplicable, how: "no key in the app"))
    static let fault = Result<Cell, LabError>.failure(LabError("the server did not start"))

    static func row(_ name: RowName, _ cells: [Result<Cell, LabError>?]) -> Matrix.Row {
        var row = Matrix.Row(name: name, summary: "a scheme")
        for (attack, cell) in zip(attacks, cells) { row.cells[attack.name] = cell }
        return row
    }

    static func report(_ rows: [Matrix.Row], _ attacks: [any Attack] = attacks) -> LabReport {
        LabReport(
            matrix: Matrix(rows: rows, attacks: attacks), began: 1_777_638_600, seconds: 192.04,
            version: "1.2.3")
    }

    /// One cell of each letter.
    static let mixed = report([
        row("md5", [fell, held, fell, notApplicable]), row("md5+gateway", [held, held, fault, held]),
        row("countersign", [held, held, held, held]),
    ])
}
