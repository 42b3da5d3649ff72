import CountersignWire

/// A report as one HTML page that needs nothing else: no script, no outside reference. Above all the matrix; below it a part for each row,
/// with what was done and seen in each of its cells.
package struct MatrixPage {
    private let report: LabReport
    private var matrix: Matrix { report.matrix }

    package init(_ report: LabReport) { self.report = report }

    package var html: String { page.text }

    /// The policy is for the day on which an error in the escaping comes to light: nothing is loaded, and nothing runs.
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
        <p>\(matrix.rows.count) ways of serving an app, each attacked in \(matrix.attacks.count) ways, live: with an app, a server with a bank \
        behind it, and an attacker who sits between them or comes later. Every letter is what came of an attack that was carried out \
        for this page.</p>
        \(facts)
        </header>
        <main>
        \(legend)
        <h2 id="matrix">The matrix</h2>
        <p class="hint">Each column stands for attacks of one kind, and shows the worst of them. A letter leads to what was done.</p>
        \(notRun)
        \(byColumn)
        <details class="wide"><summary>Attack by attack</summary>
        \(byAttack)
        </details>
        \(matrix.rows.map { PageRow($0, matrix).markup })
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
            tally[.notStaged] == 0 ? "" : fact(String(tally[.notStaged]), "could not be staged", "error")
        let missing: Markup =
            tally.rowsNotRun == 0 ? "" : fact(String(tally.rowsNotRun), "rows not run", "error")
        return """
            <dl class="facts">
            \(fact(String(tally.executed), "attacks carried out", ""))\(fact(String(tally[.held]), "held", "held"))\
            \(fact(String(tally[.fell]), "fell", "fell"))\(faults)\(missing)\(fact(String(tally[.notApplicable]), "do not apply", ""))\
            \(fact(report.duration, "on \(when)", ""))
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

    private func fact(_ figure: String, _ meaning: String, _ look: String) -> Markup {
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
            <p>A row is a scheme as it is served. Rows without <code>+gateway</code> are the old schemes at a server as teams in the field \
            have it, with its flaws; rows with <code>+gateway</code> are the same apps at a Countersign gateway, which closes what can be \
            closed without touching the app. Rows that begin with <code>countersign</code> are Countersign's own protocol.</p>
            <p>An attacker has won when he has shown it: money moved to the thief's account, a login in the victim's name, one request \
            paid twice, a password found and used. Before each attack the victim does once what he does every day, so that a server that \
            is down cannot look like one that holds out. In the stories below, what went over the wire is shown as it was; control \
            characters are written out (<code>\\u0000</code>), and long texts are cut.</p>
            </details>
            """
    }

    // MARK: Tables

    private var byColumn: Markup {
        table(
            heads: matrix.columns.map { "<span>\($0.title)</span>" },
            cells: { row in
                matrix.columns.map { column in
                    cell(matrix.mark(row, column), PageRow.anchor(row, column), "\(row.name), \(column.title)")
                }
            })
    }

    private var byAttack: Markup {
        table(
            heads: matrix.attacks.map { "<span title=\"\($0.sentence)\">\($0.name.description)</span>" },
            cells: { row in
                matrix.attacks.map { attack in
                    cell(Mark(row.cells[attack.name]), PageRow.anchor(row, attack), "\(row.name), \(attack.name)")
                }
            })
    }

    private func table(heads: [Markup], cells: (Matrix.Row) -> [Markup]) -> Markup {
        let head = heads.map { head -> Markup in "<th scope=\"col\">\(head)</th>" }
        let rows = matrix.rows.map { row -> Markup in
            """
            <tr class="\(kind(of: row))"><th scope="row"><a href="#\(row.name.description)" title="\(row.summary)">\
            \(row.name.description)</a></th>\(cells(row))</tr>

            """
        }
        return """
            <div class="scroll"><table><thead><tr><th></th>\(head)</tr></thead><tbody>
            \(rows)</tbody></table></div>
            """
    }

    private func cell(_ mark: Mark, _ anchor: String, _ what: String) -> Markup {
        """
        <td class="\(mark.look)"><a href="#\(anchor)" aria-label="\(what): \(mark.word)">\(mark.rawValue)</a></td>
        """
    }

    /// Rows of one scheme stand together.
    private func kind(of row: Matrix.Row) -> String {
        if row.name.isOurs { return "ours" }
        return row.name.description.hasSuffix("+gateway") ? "gateway" : "reference"
    }
}

extension Mark {
    /// What the stylesheet calls it.
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
