/// What the lab has found: a row for each scheme as it is served, a cell for each attack.
package struct Matrix: Sendable {
    package struct Row: Sendable {
        package var name: RowName
        /// What is attacked, in a sentence.
        package var summary: String
        package var cells: [AttackName: Result<Cell, StageFault>]

        package init(name: RowName, summary: String, cells: [AttackName: Result<Cell, StageFault>] = [:]) {
            self.name = name
            self.summary = summary
            self.cells = cells
        }
    }

    /// A row that was asked for and not run, because something is missing on this machine: neither a verdict nor an
    /// error.
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

/// A cell could not be staged. That is an error of the lab's, and never a verdict.
package struct StageFault: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
