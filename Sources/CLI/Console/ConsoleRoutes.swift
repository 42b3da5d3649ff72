import CountersignWire

/// Which page answers a path.
enum ConsoleRoutes {
    static func answer(
        to request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsoleAnswer {
        switch (request.method, request.segments.first ?? "") {
        case (.read, "do"): return .page(try ActionPage.form(for: request, of: visit))
        case (.submit(let form), "do"): return try ActionPage.run(form, at: request, of: visit)
        case (.submit, _):
            throw APIProblem(405, code: "method", detail: "this page takes no form")
        case (.read, _): return try page(request, of: visit)
        }
    }

    private static func page(
        _ request: ConsoleRequest, of visit: ConsoleVisit
    ) throws(APIProblem) -> ConsoleAnswer {
        let segments = request.segments
        switch (segments.count, segments.first ?? "", segments.count > 2 ? segments[2] : "") {
        case (0, _, _): return .page(OverviewPage.page(visit))
        case (1, "apps", _): return .page(try AppPages.list(visit))
        case (2, "apps", _): return .page(try AppPages.app(segments[1], of: visit))
        case (3, "apps", "policy"): return .page(try AppPages.policy(segments[1], of: visit))
        case (3, "apps", "messages"):
            return .page(try RefusalTextPage.page(of: segments[1], visit: visit))
        case (3, "apps", "accounts"):
            return .page(try AccountPages.list(segments[1], request: request, of: visit))
        case (4, "apps", "accounts"):
            return .page(try AccountPages.account(segments[3], app: segments[1], of: visit))
        case (5, "apps", "accounts") where segments[4] == "export":
            return try AccountPages.export(segments[3], app: segments[1], of: visit)
        case (2, "releases", _): return .page(try ReleasePages.release(segments[1], of: visit))
        case (1, "refusals", _): return .page(try RefusalPages.list(visit))
        case (2, "refusals", _): return .page(try RefusalPages.refusals(of: segments[1], visit: visit))
        case (2, "events", _): return .page(try RefusalPages.event(segments[1], visit: visit))
        case (1, "audit", _): return .page(try AuditPages.list(request, of: visit))
        case (2, "audit", _) where segments[1] == "verification":
            return .page(try AuditPages.verification(visit))
        case (1, "pins", _): return .page(try PinPage.page(visit))
        case (1, "webhooks", _): return .page(try WebhookPages.list(visit))
        case (1, "server", _): return .page(try ServerPages.server(visit))
        case (1, "lab", _): return .page(try LabPages.lab(visit))
        case (1, "doctor", _): return .page(try ServerPages.doctor(visit))
        case (1, "operators", _): return .page(try ServerPages.operators(visit))
        case (1, "search", _): return try SearchPage.answer(to: request.value("q"), of: visit)
        default: throw APIProblem(404, code: "not-found", detail: "there is no such page")
        }
    }
}
