import CountersignWire

/// A report for a terminal of 120 columns. What came off a wire is in it as ``VisibleText``.
package struct MatrixText {
    private let report: LabReport
    private let paint: Paint

    package init(_ report: LabReport, _ style: Paint.Style) {
        self.report = report
        paint = Paint(style)
    }

    /// Many rows and attacks as a table of columns; one row, or one attack, as a list that says how each cell came about.
    package var text: String {
        let matrix = report.matrix
        var parts: [String] = []
        if matrix.rows.count == 1 {
            parts += matrix.rows.map { list(of: $0) }
        } else if matrix.attacks.count == 1 {
            parts += matrix.attacks.map { list(of: $0) }
        } else if !matrix.rows.isEmpty {
            parts.append(table)
            parts.append(Mark.allCases.map { "\(paint($0))  \($0.meaning)" }.joined(separator: "\n"))
        }
        parts += [notRun, faults, broken].compactMap(\.self)
        parts.append("\(matrix.tally.sentence). \(report.duration)")
        return parts.joined(separator: "\n\n")
    }

    // MARK: Table

    /// Heads on stairs: the words of fifteen columns do not fit beside one another.
    private var table: String {
        let columns = report.matrix.columns
        let width = report.matrix.rows.map(\.name.description.count).max() ?? 0
        let margin = String(repeating: " ", count: width + 2)
        let heads = columns.enumerated().map { index, column in
            margin + paint.dim(String(repeating: "│   ", count: index)) + paint.heading(column.title)
        }
        let rows = report.matrix.rows.map { row in
            let marks = columns.map { paint(report.matrix.mark(row, $0)) }
            return pad(row.name.description, width) + "  " + marks.joined(separator: "   ")
        }
        return (heads + rows).joined(separator: "\n")
    }

    // MARK: Lists

    private func list(of row: Matrix.Row) -> String {
        let attacks = report.matrix.attacks
        let width = attacks.map(\.name.description.count).max() ?? 0
        let lines = attacks.map { line($0.name.description, width, row.cells[$0.name]) }
        return ([paint.heading(row.name.description) + "  " + row.summary] + lines).joined(separator: "\n")
    }

    private func list(of attack: any Attack) -> String {
        let rows = report.matrix.rows
        let width = rows.map(\.name.description.count).max() ?? 0
        let lines = rows.map { line($0.name.description, width, $0.cells[attack.name]) }
        return ([paint.heading(attack.name.description) + "  " + attack.sentence] + lines).joined(separator: "\n")
    }

    private func line(_ name: String, _ width: Int, _ cell: Result<Cell, StageFault>?) -> String {
        let mark = Mark(cell)
        let how = wrapped(VisibleText.of(cell.how), from: width + 7)
        return "  \(paint(mark))  \(pad(name, width))  \(mark == .notApplicable ? paint.dim(how) : how)"
    }

    // MARK: What must not be, or was not

    private var notRun: String? {
        let rows = report.matrix.notRun
        guard !rows.isEmpty else { return nil }
        let lines = rows.map { "  \($0.name): \(VisibleText.of($0.reason))" }
        return ([paint.heading("not run")] + lines).joined(separator: "\n")
    }

    private var faults: String? {
        var lines: [String] = []
        for row in report.matrix.rows {
            // A server that would not start is one line, and not one for each attack.
            let faults = report.matrix.faults.filter { $0.row == row.name }
            for why in faults.map(\.why).uniqued {
                let attacks = faults.filter { $0.why == why }.map(\.attack.description)
                let names = attacks.count > 3 ? "\(attacks.count) attacks" : attacks.joined(separator: ", ")
                lines.append("  \(row.name) \(names): \(VisibleText.of(why))")
            }
        }
        guard !lines.isEmpty else { return nil }
        return ([paint("could not be staged", as: .notStaged)] + lines).joined(separator: "\n")
    }

    private var broken: String? {
        let broken = report.matrix.broken
        guard !broken.isEmpty else { return nil }
        let lines = broken.map { "  \($0.row) \($0.attack): \(VisibleText.of($0.how))" }
        return ([paint("our own fell", as: .fell)] + lines).joined(separator: "\n")
    }

    // MARK: Space

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// Lines of words that begin at that column, and end before the 120th.
    private func wrapped(_ text: String, from column: Int) -> String {
        let margin = "\n" + String(repeating: " ", count: column)
        var lines: [String] = []
        for word in text.split(whereSeparator: { $0 == " " || $0.isNewline }) {
            if let last = lines.last, column + last.count + 1 + word.count <= 120 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.joined(separator: margin)
    }
}

extension Result<Cell, StageFault>? {
    /// What became of a cell, in a sentence.
    var how: String {
        switch self {
        case .success(let cell): cell.how
        case .failure(let fault): fault.description
        case nil: "was not run"
        }
    }
}

extension [String] {
    /// Each once, where it stands first.
    fileprivate var uniqued: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}
