import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// A refusal as its caller reads it. Source: docs/protocol.md, "Answers"; RFC 9457.
enum RefusalAnswer {
    /// Whether the caller is told the exact reason.
    enum Detail { case coarse, exact }

    static func make(
        _ refusal: Refusal, dialect: AnswerDialect, detail: Detail, event: EventID, now: Int64
    ) -> Answer {
        switch dialect {
        case .problem: problem(refusal, detail, event, now)
        case .legacy: legacy(refusal, detail, event)
        }
    }

    /// `application/problem+json` with a stable code, and an instance that is found in the log.
    private static func problem(_ refusal: Refusal, _ detail: Detail, _ event: EventID, _ now: Int64) -> Answer {
        let code = refusal.code
        var line = JSONLine()
        line.add("type", "about:blank")
        line.add("title", code.title)
        line.add("status", code.status)
        line.add("code", code.name)
        line.add("instance", event.text)
        if isHarmless(code) || detail == .exact, !refusal.detail.isEmpty { line.add("detail", refusal.detail) }
        if code == .stale { line.add("time", Int(now)) }
        if let link = refusal.link { line.add("update_url", link) }
        line.end()
        var fields: [Answer.Field] = [.init("Cache-Control", "no-store")]
        if let seconds = refusal.retryAfter { fields.append(.init("Retry-After", String(seconds))) }
        return Answer(status: code.status, type: "application/problem+json", fields: fields, body: line.bytes)
    }

    /// Form-md5's clients look for `err` in a successful answer only, so the status is always 200. Source: legacy, L1.
    private static func legacy(_ refusal: Refusal, _ detail: Detail, _ event: EventID) -> Answer {
        let code = refusal.code
        let exact = isHarmless(code) || detail == .exact
        let message = exact && !refusal.detail.isEmpty ? refusal.detail : code.title
        var error = JSONLine(reusing: Array(#"{"err":"#.utf8))
        error.add("code", code.legacyNumber)
        error.add("msg", message)
        error.add("eventId", code == .updateRequired ? refusal.link ?? "" : event.text)
        error.end()
        return Answer(
            status: 200, type: "application/json", fields: [.init("Cache-Control", "no-store")],
            body: error.bytes + [UInt8(ascii: "}")])
    }

    /// Reasons that tell an attacker nothing but how to write HTTP.
    private static func isHarmless(_ code: Refusal.Code) -> Bool {
        switch code {
        case .malformed, .tooLarge, .timeout, .unsigned, .stale: true
        default: false
        }
    }
}
