import CountersignSchemes
import CountersignWire

extension Check {
    /// Messages that two readers could take for two different ones: the way to smuggle a request past who checks it. Each is signed and right
    /// but for its framing, and a second request follows on the same connection. Source: RFC 9112 §11.2.
    static func framing(_ subject: Subject) -> [Check] {
        flaws.map { flaw in
            Check(flaw.name, .framing, flaw.sent) { (inquiry) throws(Fault) in try smuggle(flaw, inquiry) }
        } + [Check("oversized-head", .framing, "a signed request with a field of 80 KiB", ask: oversized)]
    }

    private struct Flaw: Sendable {
        let name: String
        let sent: String
        /// Lines that are put behind the first field, ends of lines included.
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
            name: "bare-line-feed", sent: "a signed request with a line that ends in LF alone", lines: "X-Selftest: 1\n"
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
        Flaw(name: "two-hosts", sent: "a signed request with a second Host", lines: "Host: another.invalid\r\n"),
    ]

    private static func smuggle(_ flaw: Flaw, _ inquiry: Inquiry) throws(Fault) -> Finding {
        let draft = try inquiry.signed(.withBody)
        let text = String(decoding: draft.wire, as: UTF8.self)
        let bytes = try text.replacing(
            "Host: \(draft.authority)\r\n", by: "Host: \(draft.authority)\r\n\(flaw.lines)", in: "the head")
        let second = "GET /selftest-smuggled HTTP/1.1\r\nHost: \(draft.authority)\r\n\r\n"
        let connection = try inquiry.connect()
        inquiry.send(Array((bytes + second).utf8), on: connection)
        var reader = MessageReader(connection)
        let first = inquiry.said(inquiry.next(to: draft.method, from: &reader))
        let next = inquiry.next(to: "GET", from: &reader)
        let isEnd = if case .closed = next { true } else { false }
        let isRefused = first == .closed || first.isRefused(as: [.malformed])
        return .judged(
            isRefused && isEnd, expected: "refused as malformed, and the connection closed",
            came: "\(first), then \(isEnd ? "the connection closed" : "\(Said(next))")")
    }

    private static func oversized(_ inquiry: Inquiry) throws(Fault) -> Finding {
        var draft = inquiry.draft(.bare)
        draft.set("X-Selftest", String(repeating: "a", count: 80 << 10))
        let said = try inquiry.ask(try inquiry.sign(draft))
        return .judged(
            said == .closed || said.isRefused(as: [.tooLarge]),
            expected: "refused as too-large, or the connection closed",
            came: "\(said)")
    }
}
