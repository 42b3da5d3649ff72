import CountersignWire

/// The verdicts of a run without what led to them, to be kept: when it was, of which version, and each cell's
/// mark.
package struct LabRecord: Sendable, Equatable {
    package struct RecordedAttack: Sendable, Equatable {
        package let name: AttackName
        package let column: Column

        package init(name: AttackName, column: Column) { (self.name, self.column) = (name, column) }
    }

    package struct RecordedRow: Sendable, Equatable {
        package let name: RowName
        package let summary: String
        /// One for each attack, in their order.
        package let marks: [Mark]

        package init(name: RowName, summary: String, marks: [Mark]) {
            (self.name, self.summary, self.marks) = (name, summary, marks)
        }
    }

    package struct SkippedRow: Sendable, Equatable {
        package let name: RowName
        package let reason: String

        package init(name: RowName, reason: String) { (self.name, self.reason) = (name, reason) }
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
    /// The most characters of a sentence.
    package static let mostScalars = 400

    package init(
        version: String, began: Int64, seconds: Int64, attacks: [RecordedAttack], rows: [RecordedRow],
        skippedRows: [SkippedRow]
    ) {
        (self.version, self.began, self.seconds) = (version, began, seconds)
        (self.attacks, self.rows, self.skippedRows) = (attacks, rows, skippedRows)
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
    package init(reading bytes: [UInt8]) throws(OperationalError) {
        guard bytes.count <= LabRecord.mostBytes else {
            throw LabRecord.damage("over \(LabRecord.mostBytes) bytes")
        }
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes)
        } catch {
            throw LabRecord.damage("not JSON: \(error)")
        }
        let root = document.root
        guard let version = root["version"]?.string, (1...64).contains(version.unicodeScalars.count),
            let began = root["began"].flatMap({ document.integer($0, in: 0...(1 << 53)) }),
            let seconds = root["seconds"].flatMap({ document.integer($0, in: 0...(1 << 53)) })
        else { throw LabRecord.damage("expected `version`, `began` and `seconds`") }
        let attacks = try LabRecord.list("attacks", of: root).map { (entry) throws(OperationalError) in
            guard let column = entry["column"]?.string.flatMap(Column.init) else {
                throw LabRecord.damage("an attack without a known `column`")
            }
            return RecordedAttack(name: AttackName(try LabRecord.name("name", of: entry)), column: column)
        }
        let rows = try LabRecord.list("rows", of: root).map { (entry) throws(OperationalError) in
            RecordedRow(
                name: RowName(try LabRecord.name("scheme", of: entry)),
                summary: try LabRecord.text("summary", of: entry),
                marks: try LabRecord.marks(of: entry, attacks: attacks))
        }
        let skipped = try LabRecord.list("not_run", of: root).map { (entry) throws(OperationalError) in
            SkippedRow(
                name: RowName(try LabRecord.name("scheme", of: entry)),
                reason: try LabRecord.text("reason", of: entry))
        }
        guard Set(attacks.map(\.name)).count == attacks.count,
            Set(rows.map(\.name) + skipped.map(\.name)).count == rows.count + skipped.count
        else { throw LabRecord.damage("expected each name once") }
        (self.version, self.began, self.seconds) = (version, Int64(began), Int64(seconds))
        (self.attacks, self.rows, skippedRows) = (attacks, rows, skipped)
    }

    private static func damage(_ reason: String) -> OperationalError {
        OperationalError(.failed, message: reason)
    }

    private static func list(_ name: String, of root: JSON) throws(OperationalError) -> [JSON] {
        guard let list = root[name]?.elements, list.count <= mostNames else {
            throw LabRecord.damage("expected a list `\(name)` of at most \(mostNames)")
        }
        return list
    }

    private static func name(_ name: String, of entry: JSON) throws(OperationalError) -> String {
        guard let text = entry[name]?.string, (1...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || "-+.".utf8.contains($0) })
        else { throw LabRecord.damage("expected `\(name)` of 1 to 64 letters, digits, `-`, `+` and `.`") }
        return text
    }

    private static func text(_ name: String, of entry: JSON) throws(OperationalError) -> String {
        guard let text = entry[name]?.string, text.unicodeScalars.count <= mostScalars else {
            throw LabRecord.damage("expected `\(name)` of at most \(mostScalars) characters")
        }
        return text
    }

    private static func marks(of entry: JSON, attacks: [RecordedAttack]) throws(OperationalError) -> [Mark] {
        guard let cells = entry["cells"]?.members, cells.count == attacks.count else {
            throw LabRecord.damage("expected a cell for each attack")
        }
        return try zip(attacks, cells).map { (attack, cell) throws(OperationalError) in
            guard cell.name == attack.name.description, let mark = cell.value.string.flatMap(Mark.init)
            else { throw LabRecord.damage("expected a mark for `\(attack.name)`") }
            return mark
        }
    }
}
