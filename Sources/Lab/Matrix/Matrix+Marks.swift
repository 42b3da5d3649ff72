extension Matrix {
    /// Those in which at least one attack stands, in the order of the table.
    package var columns: [Column] { Column.allCases.filter { column in attacks.contains { $0.column == column } } }

    package func attacks(in column: Column) -> [any Attack] { attacks.filter { $0.column == column } }

    package func mark(_ row: Row, _ column: Column) -> Mark {
        Mark.worst(attacks(in: column).map { Mark(row.cells[$0.name]) }) ?? .notApplicable
    }

    /// All that were selected, whether or not they came to a verdict.
    package var tally: Tally {
        var tally = Tally()
        tally.rowsNotRun = notRun.count
        for row in rows {
            for attack in attacks { tally.counts[Mark(row.cells[attack.name]), default: 0] += 1 }
        }
        return tally
    }

    /// How many cells bear which letter.
    package struct Tally: Sendable, Equatable {
        fileprivate var counts: [Mark: Int] = [:]
        /// Of the selected ones.
        package fileprivate(set) var rowsNotRun = 0

        package subscript(_ mark: Mark) -> Int { counts[mark, default: 0] }

        /// Attacks that were carried out to their end.
        package var executed: Int { self[.held] + self[.fell] }

        /// For people, on one line.
        package var sentence: String {
            var text = "\(executed) attacks carried out: \(self[.held]) held, \(self[.fell]) fell; "
            text += "\(self[.notApplicable]) do not apply"
            if self[.notStaged] > 0 { text += "; \(self[.notStaged]) could not be staged" }
            if rowsNotRun > 0 { text += "; \(rowsNotRun) \(rowsNotRun == 1 ? "row was" : "rows were") not run" }
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

    /// Where our own rows fell: that must never be.
    package var broken: [(row: RowName, attack: AttackName, how: String)] {
        rows.filter(\.name.isOurs).flatMap { row in
            attacks.compactMap { attack -> (row: RowName, attack: AttackName, how: String)? in
                guard case .success(let cell)? = row.cells[attack.name], cell.verdict == .fell else { return nil }
                return (row.name, attack.name, cell.how)
            }
        }
    }
}

extension RowName {
    /// Whether the row is Countersign's own protocol, with or without TLS.
    package var isOurs: Bool { description.hasPrefix("countersign") }
}
