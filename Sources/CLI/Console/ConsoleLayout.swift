import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// The frame that all pages have.
extension ConsolePage {
    /// What went wrong, as a page.
    init(_ problem: APIProblem) {
        let meaning = APIProblem.statuses.first { $0.status == problem.status }?.meaning
        // The API has one reason for 403; the console has more.
        let isOwn = problem.status == 403 && problem.code != "scope-missing"
        let title = isOwn ? "Refused" : meaning ?? "Refused"
        self.init(
            title, status: problem.status,
            body: """
                <p class="notice bad" role="alert">\(problem.detail)</p>
                <p><a href="/">The first page</a></p>
                """)
    }

    /// The whole page, for a signed-in operator.
    func markup(for visit: ConsoleVisit) -> HTML {
        let session = visit.session
        return ConsolePage.document(
            title: title,
            body: """
                <header>
                <p class="brand"><a href="/">Countersign</a></p>
                <nav aria-label="Console"><ul>\(ConsolePage.menu(for: visit))</ul></nav>
                <form class="search" role="search" action="\(ConsolePath.path("search"))">
                <label for="search">Event, account, key id or session</label>
                <input id="search" name="q" type="search" maxlength="256" autocomplete="off"
                 spellcheck="false">
                <button>Find</button>
                </form>
                <form class="session" method="post" action="\(ConsolePath.path("sign-out"))">
                \(visit.formField)<span>\(session.name)</span> <button class="plain">Sign out</button>
                </form>
                </header>
                <main id="main" tabindex="-1">
                \(ConsolePage.trail(trail))<h1>\(title)</h1>
                \(body)
                </main>
                """)
    }

    /// The same without a session.
    var markupAlone: HTML {
        ConsolePage.document(
            title: title,
            body: """
                <header><p class="brand">Countersign</p></header>
                <main id="main" tabindex="-1"><h1>\(title)</h1>
                \(body)
                </main>
                """)
    }

    private static func document(title: String, body: HTML) -> HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(title) · Countersign</title>
        <link rel="stylesheet" href="\(ConsoleAsset.style.path)">
        <link rel="icon" href="\(ConsoleAsset.icon.path)" type="image/svg+xml">
        <script src="\(ConsoleAsset.script.path)" defer></script>
        </head>
        <body>
        <a class="skip" href="#main">Skip to the contents</a>
        \(body)
        </body>
        </html>

        """
    }

    private static func menu(for visit: ConsoleVisit) -> [HTML] {
        let entries: [(title: String, path: String, scope: APIScope)] = [
            ("Apps", ConsolePath.path("apps"), .appsRead),
            ("Refusals", ConsolePath.path("refusals"), .serverRead),
            ("Audit", ConsolePath.path("audit"), .auditRead),
            ("Pins", ConsolePath.path("pins"), .appsRead),
            ("Webhooks", ConsolePath.path("webhooks"), .webhooksRead),
            ("Server", ConsolePath.path("server"), .serverRead),
            ("Lab", ConsolePath.path("lab"), .serverRead),
            ("Operators", ConsolePath.path("operators"), .serverRead),
        ]
        return ["<li><a href=\"/\">Overview</a></li>"]
            + entries.filter { visit.may($0.scope) }.map { "<li><a href=\"\($0.path)\">\($0.title)</a></li>" }
    }

    private static func trail(_ trail: [(title: String, path: String)]) -> HTML {
        guard !trail.isEmpty else { return .none }
        let parts: [HTML] = trail.map { "<li><a href=\"\($0.path)\">\($0.title)</a></li>" }
        return "<nav aria-label=\"Where you are\"><ol class=\"trail\">\(parts)</ol></nav>"
    }
}

extension ConsoleVisit {
    /// The hidden field that every form has.
    var formField: HTML { "<input type=\"hidden\" name=\"form\" value=\"\(formToken.text)\">" }

    /// Links to the forms of operations that this operator may run; none without any.
    func actions(_ links: [(operation: String, values: [(name: String, value: String)])]) -> HTML {
        let shown: [HTML] = links.compactMap { operation, values in
            guard may(operation), let action = ConsoleAction.named(operation) else { return nil }
            let path = ConsolePath.path("do", operation, query: values)
            let style = action.weight == .grave ? "button grave" : "button"
            // The same words lead to many forms: a screen reader hears of what.
            let subject = action.subject.filter { $0 != "app" }.compactMap { name in
                values.first { $0.name == name }?.value
            }
            let name = ([action.link] + subject.filter { !$0.isEmpty }).joined(separator: " ")
            return "<a class=\"\(style)\" href=\"\(path)\" aria-label=\"\(name)\">\(action.link)</a> "
        }
        return shown.isEmpty ? .none : "<p class=\"actions\">\(shown)</p>"
    }
}

/// Parts that several pages have.
enum ConsoleMarkup {
    /// A table in a region that scrolls by itself on a narrow screen, and by keyboard.
    static func table(_ caption: String, head: [String], rows: [[HTML]], empty: String) -> HTML {
        guard !rows.isEmpty else { return "<p class=\"empty\">\(empty)</p>" }
        let cells: [HTML] = head.map { "<th scope=\"col\">\($0)</th>" }
        let lines: [HTML] = rows.map { row in
            let cells: [HTML] = row.enumerated().map { index, cell in
                index == 0 ? "<th scope=\"row\">\(cell)</th>" : "<td>\(cell)</td>"
            }
            return "<tr>\(cells)</tr>\n"
        }
        return """
            <div class="scroll" role="region" tabindex="0" aria-label="\(caption)">
            <table><caption>\(caption)</caption>
            <thead><tr>\(cells)</tr></thead>
            <tbody>
            \(lines)</tbody></table></div>
            """
    }

    /// Names and values.
    static func facts(_ facts: [(name: String, value: HTML)]) -> HTML {
        let parts: [HTML] = facts.map { "<div><dt>\($0.name)</dt><dd>\($0.value)</dd></div>\n" }
        return "<dl class=\"facts\">\(parts)</dl>"
    }

    static func section(_ title: String, id: String, body: HTML) -> HTML {
        """
        <section><h2 id="\(id)">\(title)</h2>
        \(body)
        </section>

        """
    }

    /// Shows a time in UTC, or the text `empty` for nil. `seconds` is in whole Unix seconds.
    static func time(_ seconds: Int64?, empty: String = "never") -> HTML {
        guard let seconds else { return "\(empty)" }
        let text = TimeText.text(seconds)
        let shown = text.replacing("T", with: " ").replacing("Z", with: " UTC")
        return "<time datetime=\"\(text)\">\(shown)</time>"
    }

    static func code(_ text: String) -> HTML { "<code>\(text)</code>" }

    static func link(_ text: String, to path: String) -> HTML { "<a href=\"\(path)\">\(text)</a>" }

    /// A word with a meaning that is not in its colour alone.
    static func badge(_ text: String, tone: Tone) -> HTML {
        "<span class=\"badge \(tone.rawValue)\">\(text)</span>"
    }

    enum Tone: String { case good, warning, bad, quiet }

    /// What is wrong, point by point.
    static func alert(_ text: String, points: [HTML]) -> HTML {
        "<div class=\"notice bad\" role=\"alert\"><p>\(text)</p><ul>\(points)</ul></div>"
    }

    static func notice(_ text: String, tone: Tone) -> HTML {
        "<p class=\"notice \(tone.rawValue)\" role=\"\(tone == .bad ? "alert" : "status")\">\(text)</p>"
    }

    /// `1,234`.
    static func number(_ number: some BinaryInteger) -> String {
        let digits = String(number)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0, text != "-" { text.append(",") }
            text.append(digit)
        }
        return text
    }
}
