/// One row's part of the page: its columns, in each the attacks, and in each attack its story.
struct PageRow {
    private let row: Matrix.Row
    private let matrix: Matrix

    init(_ row: Matrix.Row, _ matrix: Matrix) {
        self.row = row
        self.matrix = matrix
    }

    static func anchor(_ row: Matrix.Row, _ column: Column) -> String { "\(row.name)/\(column.rawValue)" }

    static func anchor(_ row: Matrix.Row, _ attack: any Attack) -> String {
        "\(anchor(row, attack.column))/\(attack.name)"
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
        <section class="column" id="\(PageRow.anchor(row, column))">
        <h3>\(column.title)</h3>
        \(matrix.attacks(in: column).map { part($0) })
        </section>

        """
    }

    private func part(_ attack: any Attack) -> Markup {
        let cell = row.cells[attack.name]
        let line: Markup = """
            \(Mark(cell).markup) <span class="line"><b>\(attack.name.description)</b> <span class="how">\(cell.how)</span></span>
            """
        let anchor = PageRow.anchor(row, attack)
        guard case .success(let cell)? = cell, !cell.steps.isEmpty else {
            return "<div class=\"cell\" id=\"\(anchor)\">\(line)</div>\n"
        }
        return """
            <details class="cell" id="\(anchor)"><summary>\(line)</summary>
            <p class="sentence">\(attack.sentence)</p>
            \(story(Excerpt(of: cell)))
            </details>

            """
    }

    private func story(_ excerpt: Excerpt) -> Markup {
        let gap: Markup =
            excerpt.stepsLeftOut == 0
            ? "" : "<li class=\"cut\">\(excerpt.stepsLeftOut) more such steps, left out here</li>\n"
        return "<ol>\n\(excerpt.beginning.map { step($0) })\(gap)\(excerpt.end.map { step($0) })</ol>"
    }

    private func step(_ part: Excerpt.Part) -> Markup {
        let shown = part.shown.map { text -> Markup in
            let cut: Markup =
                part.bytesLeftOut == 0 ? "" : "<p class=\"cut\">cut here: \(part.bytesLeftOut) bytes more</p>"
            return "<pre>\(text)</pre>\(cut)"
        }
        return """
            <li class="\(part.actor.rawValue)"><p><b>The \(part.actor.rawValue)</b> \(part.did)</p>\(shown ?? "")</li>

            """
    }
}
