import CountersignAuthority
import CountersignServer
import CountersignWire

/// What is wrong with the server, and what will be: on the first page, where the script keeps it up to date,
/// and on the server's.
enum StatusNotices {
    /// Warnings name settings and paths, which not all operators may read.
    static func markup(of status: ServerFigures.Status, visit: ConsoleVisit) -> HTML {
        let warnings: HTML = visit.may(.serverRead) ? warnings(status) : .none
        return "\(readiness(status))\n\(warnings)"
    }

    private static func readiness(_ status: ServerFigures.Status) -> HTML {
        guard !status.problems.isEmpty else {
            return "<p class=\"notice good\" role=\"status\" id=\"live-ready\">The server is ready.</p>"
        }
        return """
            <div class="notice bad" role="alert" id="live-ready"><p>The server is not ready:</p>
            <ul>\(points(status.problems))</ul></div>
            """
    }

    private static func warnings(_ status: ServerFigures.Status) -> HTML {
        guard !status.warnings.isEmpty else {
            return "<div class=\"notice warning\" role=\"status\" id=\"live-warnings\" hidden></div>"
        }
        return """
            <div class="notice warning" role="status" id="live-warnings"><p>Warnings:</p>
            <ul>\(points(status.warnings))</ul></div>
            """
    }

    private static func points(_ points: [(cause: String, detail: String)]) -> [HTML] {
        points.map { "<li><strong>\($0.cause)</strong>: \($0.detail)</li>" }
    }

    /// What stands in place of a section whose operation has failed: the rest of the page is needed most
    /// then.
    static func absence(_ title: String, id: String, because problem: APIProblem) -> HTML {
        ConsoleMarkup.section(
            title, id: id,
            body: ConsoleMarkup.notice("This cannot be shown now: \(problem.detail)", tone: .warning))
    }
}
