/// The results of a run: a row for each way of serving an app, a cell for each attack.
package struct Matrix: Sendable {
    package struct Row: Sendable {
        package var name: RowName
        /// The served scheme, in one sentence.
        package var summary: String
        package var cells: [AttackName: Result<Cell, LabError>]

        package init(name: RowName, summary: String, cells: [AttackName: Result<Cell, LabError>] = [:]) {
            self.name = name
            self.summary = summary
            self.cells = cells
        }
    }

    /// A selected row that was not run, because something is missing on this machine: neither a verdict nor
    /// an error.
    package struct RowNotRun: Sendable {
        package var name: RowName
        package var summary: String
        package var reason: String

        package init(name: RowName, summary: String, reason: String) {
            self.name = name
            self.summary = summary
            self.reason = reason
        }
    }

    /// In the order of the table.
    package var rows: [Row]
    /// In the order of the table.
    package var notRun: [RowNotRun]
    /// In the order of the table.
    package var attacks: [any Attack]

    package init(rows: [Row], attacks: [any Attack], notRun: [RowNotRun] = []) {
        self.rows = rows
        self.notRun = notRun
        self.attacks = attacks
    }
}

/// A cell could not be staged, or a file is no expectation. This is a failure of the lab and never a verdict.
package struct LabError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension Matrix {
    /// The columns that contain at least one of the attacks, in the order of the table.
    package var columns: [Column] {
        Column.allCases.filter { column in attacks.contains { $0.column == column } }
    }

    package func attacks(in column: Column) -> [any Attack] { attacks.filter { $0.column == column } }

    package func mark(for row: Row, in column: Column) -> Mark {
        Mark.worst(attacks(in: column).map { Mark(row.cells[$0.name]) }) ?? .notApplicable
    }

    /// Counts all selected cells, with or without verdict.
    package var tally: Tally {
        var tally = Tally()
        tally.rowsNotRun = notRun.count
        for row in rows {
            for attack in attacks { tally.counts[Mark(row.cells[attack.name]), default: 0] += 1 }
        }
        return tally
    }

    /// The number of cells for each mark.
    package struct Tally: Sendable, Equatable {
        fileprivate var counts: [Mark: Int] = [:]
        /// Of the selected rows.
        package fileprivate(set) var rowsNotRun = 0

        package subscript(_ mark: Mark) -> Int { counts[mark, default: 0] }

        /// Attacks that were carried out completely.
        package var executed: Int { self[.held] + self[.fell] }

        /// The counts in one line of text.
        package var sentence: String {
            var text = "\(executed) attacks carried out: \(self[.held]) held, \(self[.fell]) fell; "
            text += "\(self[.notApplicable]) do not apply"
            if self[.notStaged] > 0 { text += "; \(self[.notStaged]) could not be staged" }
            if rowsNotRun > 0 {
                text += "; \(rowsNotRun) \(rowsNotRun == 1 ? "row was" : "rows were") not run"
            }
            return text
        }
    }

    /// Cells without a verdict, in the order of the table, with the reason.
    package var faults: [(row: RowName, attack: AttackName, why: String)] {
        rows.flatMap { row in
            attacks.compactMap { attack -> (row: RowName, attack: AttackName, why: String)? in
                switch row.cells[attack.name] {
                case .success: nil
                case .failure(let fault): (row.name, attack.name, fault.description)
                case nil: (row.name, attack.name, "was not run")
                }
            }
        }
    }

    /// Cells where an attack on Countersign's own protocol succeeded, which must not happen.
    package var broken: [(row: RowName, attack: AttackName, how: String)] {
        rows.filter(\.name.isOurs).flatMap { row in
            attacks.compactMap { attack -> (row: RowName, attack: AttackName, how: String)? in
                guard case .success(let cell)? = row.cells[attack.name], cell.verdict == .fell else {
                    return nil
                }
                return (row.name, attack.name, cell.how)
            }
        }
    }
}

extension Mark {
    /// The mark of one cell; nil is a cell that was not run.
    package init(_ cell: Result<Cell, LabError>?) {
        guard case .success(let cell)? = cell else {
            self = .notStaged
            return
        }
        switch cell.verdict {
        case .held: self = .held
        case .fell: self = .fell
        case .notApplicable: self = .notApplicable
        }
    }
}
