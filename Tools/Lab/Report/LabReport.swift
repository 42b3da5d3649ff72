import CountersignWire

/// The results and times of a run, from which tables, JSON and pages are made.
package struct LabReport: Sendable {
    package var matrix: Matrix
    /// When the run began, Unix seconds.
    package var began: Int64
    /// The run's duration.
    package var seconds: Double
    /// The program's version.
    package var version: String

    package init(matrix: Matrix, began: Int64, seconds: Double, version: String) {
        self.matrix = matrix
        self.began = began
        self.seconds = seconds
        self.version = version
    }

    /// `3 min 12 s`, `4.2 s`.
    var duration: String {
        let tenths = Int((seconds * 10).rounded())
        if tenths < 600 { return "\(tenths / 10).\(tenths % 10) s" }
        let whole = (tenths + 5) / 10
        return "\(whole / 60) min \(whole % 60) s"
    }
}

extension LabReport {
    /// `{"rows":[{"scheme":NAME,"cells":{ATTACK:{"verdict":"H|F|–","how":TEXT,"steps":[…]}}}]}`, and the
    /// run's data beside it. A cell that could not be staged has the verdict `!`; a skipped row is listed in
    /// `not_run`, with the reason.
    package var json: JSONValue {
        let tally = matrix.tally
        return [
            "version": .string(version), "began": .integer(began),
            "seconds": .decimal((seconds * 10).rounded() / 10),
            "tally": .object(Mark.allCases.map { (name: $0.rawValue, value: .integer(Int64(tally[$0]))) }),
            "attacks": .array(matrix.attacks.map { $0.json }),
            "rows": .array(matrix.rows.map { json(of: $0) }),
            "not_run": .array(matrix.notRun.map { $0.json }),
        ]
    }

    private func json(of row: Matrix.Row) -> JSONValue {
        let cells = matrix.attacks.map { attack in
            (name: attack.name.description, value: json(of: row.cells[attack.name]))
        }
        return [
            "scheme": .string(row.name.description), "summary": .string(row.summary), "cells": .object(cells),
        ]
    }

    private func json(of cell: Result<Cell, LabError>?) -> JSONValue {
        let verdict = JSONValue.string(Mark(cell).rawValue)
        switch cell {
        case .success(let cell):
            let story = CellExcerpt(of: cell)
            return [
                "verdict": verdict, "how": .string(cell.how),
                "steps": .array((story.beginning + story.end).map { $0.json }),
                "steps_left_out": .integer(Int64(story.stepsLeftOut)),
            ]
        case .failure(let fault): return ["verdict": verdict, "how": .string(fault.description)]
        case nil: return ["verdict": verdict, "how": "was not run"]
        }
    }
}

extension Matrix.RowNotRun {
    fileprivate var json: JSONValue {
        ["scheme": .string(name.description), "summary": .string(summary), "reason": .string(reason)]
    }
}

extension Attack {
    fileprivate var json: JSONValue {
        [
            "name": .string(name.description), "column": .string(column.rawValue),
            "sentence": .string(sentence),
        ]
    }
}

extension CellExcerpt.Part {
    fileprivate var json: JSONValue {
        [
            "actor": .string(actor.rawValue), "did": .string(action), "shown": .optional(shown),
            "bytes_left_out": .integer(Int64(bytesLeftOut)),
        ]
    }
}

extension LabRecord {
    /// The verdicts of the run, without what led to them.
    package init(_ report: LabReport) {
        let matrix = report.matrix
        self.init(
            version: report.version, began: report.began, seconds: Int64(report.seconds.rounded()),
            attacks: matrix.attacks.map { RecordedAttack(name: $0.name, column: $0.column) },
            rows: matrix.rows.map { row in
                RecordedRow(
                    name: row.name, summary: LabRecord.shortened(row.summary),
                    marks: matrix.attacks.map { Mark(row.cells[$0.name]) })
            },
            skippedRows: matrix.notRun.map {
                SkippedRow(name: $0.name, reason: LabRecord.shortened($0.reason))
            })
    }

    private static func shortened(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(mostScalars)))
    }
}

/// The part of a cell's steps that a report shows. Of many steps it keeps the first and the last, and of a
/// long body the beginning, so that the report of a whole run opens in a browser.
struct CellExcerpt {
    /// The longest text of a step, in bytes of UTF-8.
    static let longestText = 3_000
    static let stepsOfBeginning = 30
    static let stepsOfEnd = 10

    /// One step.
    struct Part {
        var actor: AttackStep.Actor
        var action: String
        var shown: String?
        /// The number of bytes left out of the shown text.
        var bytesLeftOut = 0

        init(_ step: AttackStep) {
            actor = step.actor
            action = step.action
            guard let text = step.shown else { return }
            shown = CellExcerpt.cut(text)
            bytesLeftOut = text.utf8.count - (shown?.utf8.count ?? 0)
        }
    }

    var beginning: [Part]
    /// The number of steps left out between the two parts.
    var stepsLeftOut: Int
    var end: [Part]

    init(of cell: Cell) {
        let first = cell.steps.prefix(CellExcerpt.stepsOfBeginning)
        let last = cell.steps.dropFirst(first.count).suffix(CellExcerpt.stepsOfEnd)
        beginning = first.map { Part($0) }
        stepsLeftOut = cell.steps.count - first.count - last.count
        end = last.map { Part($0) }
    }

    /// Cuts at a character boundary.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > longestText else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: longestText)
        while text.utf8[end] & 0xC0 == 0x80 { end = text.utf8.index(before: end) }
        return String(decoding: text.utf8[..<end], as: UTF8.self)
    }
}
