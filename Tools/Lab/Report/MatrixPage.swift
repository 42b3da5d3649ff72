import CountersignWire

/// A report as one self-contained HTML page without scripts and external references. It shows the matrix
/// first, then a section for each row with the steps of its cells.
package struct MatrixPage {
    private let report: LabReport
    private var matrix: Matrix { report.matrix }

    package init(_ report: LabReport) { self.report = report }

    package var html: String { page.text }

    /// The content security policy is a second defence against an error in the escaping: the page loads and
    /// runs nothing.
    private var page: Markup {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>Countersign: the lab</title>
        <style>\(Markup.stylesheet)</style>
        </head>
        <body>
        <header>
        <h1>The lab</h1>
        <p>\(matrix.rows.count) ways of serving an app, each attacked in \(matrix.attacks.count) ways, live: \
        with an app, a server with a bank behind it, and an attacker who sits between them or comes later. \
        Every letter is what came of an attack that was carried out for this page.</p>
        \(facts)
        </header>
        <main>
        \(legend)
        <h2 id="matrix">The matrix</h2>
        <p class="hint">Each column stands for attacks of one kind, and shows the worst of them. A letter \
        leads to what was done.</p>
        \(notRun)
        \(byColumn)
        <details class="wide"><summary>Attack by attack</summary>
        \(byAttack)
        </details>
        \(matrix.rows.map { MatrixPageRow($0, in: matrix).markup })
        </main>
        <footer>countersign \(report.version), <code>countersign lab --html</code></footer>
        </body>
        </html>

        """
    }

    // MARK: Head

    private var facts: Markup {
        let tally = matrix.tally
        let faults: Markup =
            tally[.notStaged] == 0
            ? "" : fact(String(tally[.notStaged]), meaning: "could not be staged", style: "error")
        let missing: Markup =
            tally.rowsNotRun == 0
            ? "" : fact(String(tally.rowsNotRun), meaning: "rows not run", style: "error")
        return """
            <dl class="facts">
            \(fact(String(tally.executed), meaning: "attacks carried out", style: ""))\
            \(fact(String(tally[.held]), meaning: "held", style: "held"))\
            \(fact(String(tally[.fell]), meaning: "fell", style: "fell"))\(faults)\(missing)\
            \(fact(String(tally[.notApplicable]), meaning: "do not apply", style: ""))\
            \(fact(report.duration, meaning: "on \(when)", style: ""))
            </dl>
            """
    }

    private var notRun: Markup {
        guard !matrix.notRun.isEmpty else { return "" }
        let rows = matrix.notRun.map { row -> Markup in
            "<li><code>\(row.name.description)</code> was not run: \(row.reason)</li>"
        }
        return "<ul>\(rows)</ul>"
    }

    private func fact(_ figure: String, meaning: String, style look: String) -> Markup {
        "<div class=\"\(look)\"><dt>\(meaning)</dt><dd>\(figure)</dd></div>"
    }

    /// `2026-05-01T12:30:00Z`, as every command prints times.
    private var when: String {
        let text = CivilTime(seconds: report.began).description
        return "\(text.prefix(10))T\(text.dropFirst(11))Z"
    }

    private var legend: Markup {
        let marks = Mark.allCases.map { mark -> Markup in "<li>\(mark.markup) \(mark.meaning)</li>" }
        return """
            <ul class="legend">\(marks)</ul>
            <details class="wide"><summary>How to read this</summary>
            <p>A row is a scheme as it is served. Rows without <code>+gateway</code> are the old schemes at \
            a server as teams in the field have it, with its flaws; rows with <code>+gateway</code> are the \
            same apps at a Countersign gateway, which closes what can be closed without touching the app. \
            Rows that begin with <code>countersign</code> are Countersign's own protocol.</p>
            <p>An attack succeeds only with a proof: money moved to the thief's account, a login in the \
            victim's name, one request paid twice, a password found and used. Before each attack the victim \
            performs the same action once undisturbed, so that a server that is down cannot look like one \
            that resists. The stories below show what went over the wire; control characters are written \
            out (<code>\\u0000</code>), and long texts are cut.</p>
            </details>
            """
    }

    // MARK: Tables

    private var byColumn: Markup {
        table(
            heads: matrix.columns.map { "<span>\($0.title)</span>" },
            cells: { row in
                matrix.columns.map { column in
                    cell(
                        matrix.mark(for: row, in: column),
                        anchor: MatrixPageRow.anchor(for: row, column: column),
                        label: "\(row.name), \(column.title)")
                }
            })
    }

    private var byAttack: Markup {
        table(
            heads: matrix.attacks.map { "<span title=\"\($0.sentence)\">\($0.name.description)</span>" },
            cells: { row in
                matrix.attacks.map { attack in
                    cell(
                        Mark(row.cells[attack.name]), anchor: MatrixPageRow.anchor(for: row, attack: attack),
                        label: "\(row.name), \(attack.name)")
                }
            })
    }

    private func table(heads: [Markup], cells: (Matrix.Row) -> [Markup]) -> Markup {
        let head = heads.map { head -> Markup in "<th scope=\"col\">\(head)</th>" }
        let rows = matrix.rows.map { row -> Markup in
            """
            <tr class="\(kind(of: row))"><th scope="row"><a href="#\(row.name.description)" \
            title="\(row.summary)">\
            \(row.name.description)</a></th>\(cells(row))</tr>

            """
        }
        return """
            <div class="scroll"><table><thead><tr><th></th>\(head)</tr></thead><tbody>
            \(rows)</tbody></table></div>
            """
    }

    private func cell(_ mark: Mark, anchor: String, label what: String) -> Markup {
        """
        <td class="\(mark.look)"><a href="#\(anchor)" aria-label="\(what): \(mark.word)"\
        >\(mark.rawValue)</a></td>
        """
    }

    /// Rows of one scheme stand together.
    private func kind(of row: Matrix.Row) -> String {
        if row.name.isOurs { return "ours" }
        return row.name.description.hasSuffix("+gateway") ? "gateway" : "reference"
    }
}

extension Mark {
    /// The class name in the stylesheet.
    var look: String {
        switch self {
        case .fell: "fell"
        case .notStaged: "error"
        case .held: "held"
        case .notApplicable: "none"
        }
    }

    var markup: Markup { "<span class=\"mark \(look)\">\(rawValue)</span>" }
}

/// One row's section of the page: its columns, their attacks and the steps of each attack.
struct MatrixPageRow {
    private let row: Matrix.Row
    private let matrix: Matrix

    init(_ row: Matrix.Row, in matrix: Matrix) {
        self.row = row
        self.matrix = matrix
    }

    static func anchor(for row: Matrix.Row, column: Column) -> String { "\(row.name)/\(column.rawValue)" }

    static func anchor(for row: Matrix.Row, attack: any Attack) -> String {
        "\(anchor(for: row, column: attack.column))/\(attack.name)"
    }

    var markup: Markup {
        """
        <section class="row" id="\(row.name.description)">
        <h2>\(row.name.description)</h2>
        <p class="hint">\(row.summary). <a href="#matrix">Back to the matrix</a></p>
        \(matrix.columns.map { part($0) })
        </section>

        """
    }

    private func part(_ column: Column) -> Markup {
        """
        <section class="column" id="\(MatrixPageRow.anchor(for: row, column: column))">
        <h3>\(column.title)</h3>
        \(matrix.attacks(in: column).map { part($0) })
        </section>

        """
    }

    private func part(_ attack: any Attack) -> Markup {
        let cell = row.cells[attack.name]
        let line: Markup = """
            \(Mark(cell).markup) <span class="line"><b>\(attack.name.description)</b> \
            <span class="how">\(cell.how)</span></span>
            """
        let anchor = MatrixPageRow.anchor(for: row, attack: attack)
        guard case .success(let cell)? = cell, !cell.steps.isEmpty else {
            return "<div class=\"cell\" id=\"\(anchor)\">\(line)</div>\n"
        }
        return """
            <details class="cell" id="\(anchor)"><summary>\(line)</summary>
            <p class="sentence">\(attack.sentence)</p>
            \(story(CellExcerpt(of: cell)))
            </details>

            """
    }

    private func story(_ excerpt: CellExcerpt) -> Markup {
        let gap: Markup =
            excerpt.stepsLeftOut == 0
            ? "" : "<li class=\"cut\">\(excerpt.stepsLeftOut) more such steps, left out here</li>\n"
        return "<ol>\n\(excerpt.beginning.map { step($0) })\(gap)\(excerpt.end.map { step($0) })</ol>"
    }

    private func step(_ part: CellExcerpt.Part) -> Markup {
        let shown = part.shown.map { text -> Markup in
            let cut: Markup =
                part.bytesLeftOut == 0 ? "" : "<p class=\"cut\">cut here: \(part.bytesLeftOut) bytes more</p>"
            return "<pre>\(text)</pre>\(cut)"
        }
        return """
            <li class="\(part.actor.rawValue)"><p><b>The \(part.actor.rawValue)</b> \
            \(part.action)</p>\(shown ?? "")</li>

            """
    }
}
