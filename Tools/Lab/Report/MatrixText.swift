import CountersignWire

/// A report for a terminal of 120 columns. Network data is shown as ``VisibleText``.
package struct MatrixText {
    private let report: LabReport
    private let paint: TerminalPainter

    package init(_ report: LabReport, style: TerminalPainter.Style) {
        self.report = report
        paint = TerminalPainter(style)
    }

    /// Many rows and attacks as a table; one row, or one attack, as a list that gives the reason of each
    /// verdict.
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

    /// The table, with staggered column heads: the words of fifteen columns do not fit side by side.
    private var table: String {
        let columns = report.matrix.columns
        let width = report.matrix.rows.map(\.name.description.count).max() ?? 0
        let margin = String(repeating: " ", count: width + 2)
        let heads = columns.enumerated().map { index, column in
            margin + paint.dim(String(repeating: "│   ", count: index)) + paint.heading(column.title)
        }
        let rows = report.matrix.rows.map { row in
            let marks = columns.map { paint(report.matrix.mark(for: row, in: $0)) }
            return pad(row.name.description, to: width) + "  " + marks.joined(separator: "   ")
        }
        return (heads + rows).joined(separator: "\n")
    }

    // MARK: Lists

    private func list(of row: Matrix.Row) -> String {
        let attacks = report.matrix.attacks
        let width = attacks.map(\.name.description.count).max() ?? 0
        let lines = attacks.map { line($0.name.description, width: width, cell: row.cells[$0.name]) }
        return ([paint.heading(row.name.description) + "  " + row.summary] + lines).joined(separator: "\n")
    }

    private func list(of attack: any Attack) -> String {
        let rows = report.matrix.rows
        let width = rows.map(\.name.description.count).max() ?? 0
        let lines = rows.map { line($0.name.description, width: width, cell: $0.cells[attack.name]) }
        return ([paint.heading(attack.name.description) + "  " + attack.sentence] + lines).joined(
            separator: "\n")
    }

    private func line(_ name: String, width: Int, cell: Result<Cell, LabError>?) -> String {
        let mark = Mark(cell)
        let how = wrapped(VisibleText.of(cell.how), from: width + 7)
        return "  \(paint(mark))  \(pad(name, to: width))  \(mark == .notApplicable ? paint.dim(how) : how)"
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
            // A server that did not start gets one line, not one for each attack.
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

    private func pad(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// The text wrapped between that column and column 120.
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

extension Result<Cell, LabError>? {
    /// The result of a cell, in a sentence.
    var how: String {
        switch self {
        case .success(let cell): cell.how
        case .failure(let fault): fault.description
        case nil: "was not run"
        }
    }
}

extension [String] {
    /// The elements without repetitions, in order of first occurrence.
    fileprivate var uniqued: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}

/// Colours on a terminal, none in a file. The letters carry the same information.
package struct TerminalPainter: Sendable {
    package enum Style: Sendable { case plain, coloured }

    private let style: Style

    package init(_ style: Style) { self.style = style }

    func callAsFunction(_ mark: Mark) -> String { callAsFunction(mark.rawValue, as: mark) }

    func callAsFunction(_ text: String, as mark: Mark) -> String {
        switch mark {
        case .fell: wrap(text, code: "1;31")
        case .notStaged: wrap(text, code: "1;33")
        case .held: wrap(text, code: "32")
        case .notApplicable: wrap(text, code: "2")
        }
    }

    func heading(_ text: String) -> String { wrap(text, code: "1") }

    func dim(_ text: String) -> String { wrap(text, code: "2") }

    private func wrap(_ text: String, code: String) -> String {
        style == .plain ? text : "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}
