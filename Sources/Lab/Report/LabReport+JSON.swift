import CountersignWire

extension LabReport {
    /// `{"rows":[{"scheme":NAME,"cells":{ATTACK:{"verdict":"H|F|–","how":TEXT,"steps":[…]}}}]}`, with what the run was beside it. A cell that
    /// could not be staged has the verdict `!`; a row that was not run stands in `not_run`, with the reason.
    package var json: JSONValue {
        let tally = matrix.tally
        return [
            "version": .string(version), "began": .integer(began),
            "seconds": .decimal((seconds * 10).rounded() / 10),
            "tally": .object(Mark.allCases.map { (name: $0.rawValue, value: .integer(Int64(tally[$0]))) }),
            "attacks": .array(matrix.attacks.map { $0.json }), "rows": .array(matrix.rows.map { json(of: $0) }),
            "not_run": .array(matrix.notRun.map { $0.json }),
        ]
    }

    private func json(of row: Matrix.Row) -> JSONValue {
        let cells = matrix.attacks.map { attack in
            (name: attack.name.description, value: json(of: row.cells[attack.name]))
        }
        return ["scheme": .string(row.name.description), "summary": .string(row.summary), "cells": .object(cells)]
    }

    private func json(of cell: Result<Cell, StageFault>?) -> JSONValue {
        let verdict = JSONValue.string(Mark(cell).rawValue)
        switch cell {
        case .success(let cell):
            let story = Excerpt(of: cell)
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
            "name": .string(name.description), "column": .string(column.rawValue), "sentence": .string(sentence),
        ]
    }
}

extension Excerpt.Part {
    fileprivate var json: JSONValue {
        [
            "actor": .string(actor.rawValue), "did": .string(did), "shown": .optional(shown),
            "bytes_left_out": .integer(Int64(bytesLeftOut)),
        ]
    }
}
