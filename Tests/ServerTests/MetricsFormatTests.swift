// Proves which text form of the metrics a scraper gets by its `Accept`.

import Testing

@testable import CountersignServer

@Suite struct MetricsFormatTests {
    private static let open = "application/openmetrics-text"

    @Test(
        "OpenMetrics where it is preferred, in a version that there is",
        arguments: [
            open, "\(open);version=1.0.0", "\(open); version=\"1.0.0\"; charset=utf-8;q=0.6,text/plain;q=0.5",
            "APPLICATION/OpenMetrics-Text;Q=0.3,*/*;q=0.3", "\(open);q=0.1",
        ])
    func openMetrics(_ accept: String) { #expect(MetricsFormat(accept: accept) == .openMetrics) }

    @Test(
        "plain text otherwise",
        arguments: [
            "", "*/*", "\(open);q=0.4,text/plain;q=0.5", "\(open);version=2.0.0", "\(open);q=0",
            // What is no weight, though some languages read it as a number.
            "\(open);q=inf", "\(open);q=1e3,text/plain;q=0.5", "\(open);q=nan", "\(open);q=0x1",
        ])
    func prometheus(_ accept: String) { #expect(MetricsFormat(accept: accept) == .prometheus) }
}
