import CountersignWire

/// The verdicts of a run without what led to them, to be kept: when it was, of which version, and each cell's
/// mark.
package struct LabRecord: Sendable, Equatable {
    package struct RecordedAttack: Sendable, Equatable {
        package let name: AttackName
        package let column: Column
    }

    package struct RecordedRow: Sendable, Equatable {
        package let name: RowName
        package let summary: String
        /// One for each attack, in their order.
        package let marks: [Mark]
    }

    package struct SkippedRow: Sendable, Equatable {
        package let name: RowName
        package let reason: String
    }

    /// The program's version.
    package let version: String
    /// When the run began, in whole Unix seconds.
    package let began: Int64
    /// The run's duration in whole seconds.
    package let seconds: Int64
    package let attacks: [RecordedAttack]
    package let rows: [RecordedRow]
    package let skippedRows: [SkippedRow]

    /// The most bytes of a record: more than twice those of a whole run.
    package static let mostBytes = 256 << 10
    private static let mostNames = 256
    private static let mostScalars = 400

    package init(_ report: LabReport) {
        let matrix = report.matrix
        (version, began, seconds) = (report.version, report.began, Int64(report.seconds.rounded()))
        attacks = matrix.attacks.map { RecordedAttack(name: $0.name, column: $0.column) }
        rows = matrix.rows.map { row in
            RecordedRow(
                name: row.name, summary: LabRecord.shortened(row.summary),
                marks: matrix.attacks.map { Mark(row.cells[$0.name]) })
        }
        skippedRows = matrix.notRun.map {
            SkippedRow(name: $0.name, reason: LabRecord.shortened($0.reason))
        }
    }

    private static func shortened(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(mostScalars)))
    }

    /// The columns of the attacks, in the order of the table.
    package var columns: [Column] {
        Column.allCases.filter { column in attacks.contains { $0.column == column } }
    }

    /// The mark of the worst attack of the column.
    package func mark(of row: RecordedRow, in column: Column) -> Mark {
        Mark.worst(zip(attacks, row.marks).lazy.filter { $0.0.column == column }.map(\.1)) ?? .notApplicable
    }

    /// The number of cells with that mark.
    package func count(of mark: Mark) -> Int {
        rows.reduce(0) { sum, row in sum + row.marks.count { $0 == mark } }
    }

    /// Cells where an attack on Countersign's own protocol succeeded, which must not happen.
    package var broken: [(row: RowName, attack: AttackName)] {
        rows.filter(\.name.isOurs).flatMap { row in
            zip(attacks, row.marks).filter { $0.1 == .fell }.map { (row.name, $0.0.name) }
        }
    }
}

extension LabRecord {
    package var json: JSONValue {
        [
            "version": .string(version), "began": .integer(began), "seconds": .integer(seconds),
            "attacks": .array(
                attacks.map { attack in
                    ["name": .string(attack.name.description), "column": .string(attack.column.rawValue)]
                }),
            "rows": .array(
                rows.map { row in
                    [
                        "scheme": .string(row.name.description), "summary": .string(row.summary),
                        "cells": .object(
                            zip(attacks, row.marks).map { attack, mark in
                                (name: attack.name.description, value: .string(mark.rawValue))
                            }),
                    ]
                }),
            "not_run": .array(
                skippedRows.map {
                    ["scheme": .string($0.name.description), "reason": .string($0.reason)]
                }),
        ]
    }

    /// Takes what ``json`` is and nothing else.
    package init(reading bytes: [UInt8]) throws(LabError) {
        guard bytes.count <= LabRecord.mostBytes else {
            throw LabError("over \(LabRecord.mostBytes) bytes")
        }
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes)
        } catch {
            throw LabError("not JSON: \(error)")
        }
        let root = document.root
        guard let version = root["version"]?.string, (1...64).contains(version.unicodeScalars.count),
            let began = root["began"].flatMap({ document.integer($0, in: 0...(1 << 53)) }),
            let seconds = root["seconds"].flatMap({ document.integer($0, in: 0...(1 << 53)) })
        else { throw LabError("expected `version`, `began` and `seconds`") }
        let attacks = try LabRecord.list("attacks", of: root).map { (entry) throws(LabError) in
            guard let column = entry["column"]?.string.flatMap(Column.init) else {
                throw LabError("an attack without a known `column`")
            }
            return RecordedAttack(name: AttackName(try LabRecord.name("name", of: entry)), column: column)
        }
        let rows = try LabRecord.list("rows", of: root).map { (entry) throws(LabError) in
            RecordedRow(
                name: RowName(try LabRecord.name("scheme", of: entry)),
                summary: try LabRecord.text("summary", of: entry),
                marks: try LabRecord.marks(of: entry, attacks: attacks))
        }
        let skipped = try LabRecord.list("not_run", of: root).map { (entry) throws(LabError) in
            SkippedRow(
                name: RowName(try LabRecord.name("scheme", of: entry)),
                reason: try LabRecord.text("reason", of: entry))
        }
        guard Set(attacks.map(\.name)).count == attacks.count,
            Set(rows.map(\.name) + skipped.map(\.name)).count == rows.count + skipped.count
        else { throw LabError("expected each name once") }
        (self.version, self.began, self.seconds) = (version, Int64(began), Int64(seconds))
        (self.attacks, self.rows, skippedRows) = (attacks, rows, skipped)
    }

    private static func list(_ name: String, of root: JSON) throws(LabError) -> [JSON] {
        guard let list = root[name]?.elements, list.count <= mostNames else {
            throw LabError("expected a list `\(name)` of at most \(mostNames)")
        }
        return list
    }

    private static func name(_ name: String, of entry: JSON) throws(LabError) -> String {
        guard let text = entry[name]?.string, (1...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || "-+.".utf8.contains($0) })
        else { throw LabError("expected `\(name)` of 1 to 64 letters, digits, `-`, `+` and `.`") }
        return text
    }

    private static func text(_ name: String, of entry: JSON) throws(LabError) -> String {
        guard let text = entry[name]?.string, text.unicodeScalars.count <= mostScalars else {
            throw LabError("expected `\(name)` of at most \(mostScalars) characters")
        }
        return text
    }

    private static func marks(of entry: JSON, attacks: [RecordedAttack]) throws(LabError) -> [Mark] {
        guard let cells = entry["cells"]?.members, cells.count == attacks.count else {
            throw LabError("expected a cell for each attack")
        }
        return try zip(attacks, cells).map { (attack, cell) throws(LabError) in
            guard cell.name == attack.name.description, let mark = cell.value.string.flatMap(Mark.init)
            else { throw LabError("expected a mark for `\(attack.name)`") }
            return mark
        }
    }
}
