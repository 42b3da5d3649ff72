import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// Request smuggling: messages whose framing two parsers read differently, so that one of them finds a
    /// request that the gateway did not verify. Each is signed and valid except for its framing, and a second
    /// request follows on the same connection. Source: RFC 9112 §11.2.
    static func framing(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        flaws.map { flaw in
            SelfTestCheck(flaw.name, family: .framing, sent: flaw.sent) {
                (inquiry) throws(OperationalError) in try smuggle(flaw, with: inquiry)
            }
        } + [
            SelfTestCheck(
                "oversized-head", family: .framing, sent: "a signed request with a field of 80 KiB",
                run: oversized)
        ]
    }

    private struct Flaw: Sendable {
        let name: String
        let sent: String
        /// Lines inserted after the first field, line ends included.
        let lines: String
    }

    private static let flaws = [
        Flaw(
            name: "two-content-lengths", sent: "a signed request with a second Content-Length",
            lines: "Content-Length: 1\r\n"),
        Flaw(
            name: "length-and-chunks", sent: "a signed request with Content-Length and Transfer-Encoding",
            lines: "Transfer-Encoding: chunked\r\n"),
        Flaw(
            name: "unknown-encoding", sent: "a signed request with Transfer-Encoding: xchunked",
            lines: "Transfer-Encoding: xchunked\r\n"),
        Flaw(
            name: "bare-line-feed", sent: "a signed request with a line that ends in LF alone",
            lines: "X-Selftest: 1\n"
        ),
        Flaw(
            name: "bare-carriage-return", sent: "a signed request with a CR within a field",
            lines: "X-Selftest: 1\rX-More: 2\r\n"),
        Flaw(
            name: "space-before-colon", sent: "a signed request with a space before a field's colon",
            lines: "X-Selftest : 1\r\n"),
        Flaw(
            name: "folded-field", sent: "a signed request with a field folded over two lines",
            lines: "X-Selftest: 1\r\n 2\r\n"),
        Flaw(
            name: "two-hosts", sent: "a signed request with a second Host", lines: "Host: another.invalid\r\n"
        ),
    ]

    private static func smuggle(_ flaw: Flaw, with inquiry: SelfTestClient) throws(OperationalError)
        -> SelfTestResult
    {
        let draft = try inquiry.signed(.withBody)
        let text = String(decoding: draft.wire, as: UTF8.self)
        let bytes = try text.replacing(
            "Host: \(draft.authority)\r\n", by: "Host: \(draft.authority)\r\n\(flaw.lines)", in: "the head")
        let second = "GET /selftest-smuggled HTTP/1.1\r\nHost: \(draft.authority)\r\n\r\n"
        let connection = try inquiry.connect()
        inquiry.send(Array((bytes + second).utf8), on: connection)
        var reader = MessageReader(connection)
        let first = inquiry.outcome(of: inquiry.nextReply(to: draft.method, from: &reader))
        let next = inquiry.nextReply(to: "GET", from: &reader)
        let isEnd = if case .closed = next { true } else { false }
        let isRefused = first == .closed || first.isRefused(as: [.malformed])
        return .judged(
            isRefused && isEnd, expected: "refused as malformed, and the connection closed",
            observed: "\(first), then \(isEnd ? "the connection closed" : "\(ReplyOutcome(next))")")
    }

    private static func oversized(_ inquiry: SelfTestClient) throws(OperationalError) -> SelfTestResult {
        var draft = inquiry.draft(.bare)
        draft.setField("X-Selftest", to: String(repeating: "a", count: 80 << 10))
        let said = try inquiry.submit(try inquiry.sign(draft))
        return .judged(
            said == .closed || said.isRefused(as: [.tooLarge]),
            expected: "refused as too-large, or the connection closed",
            observed: "\(said)")
    }
}
