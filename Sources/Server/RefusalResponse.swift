import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// A refusal as its caller receives it: with an explanation if the app's policy says `debug`. Source:
/// docs/protocol.md, "Answers"; RFC 9457.
enum RefusalResponse {
    /// How much of its reason a refusal reveals.
    enum Disclosure {
        case code
        /// The reason, where there is no signature to explain.
        case reason
        case explanation(Explanation)
        /// The address has used up its budget for explanations: the reason alone.
        case overBudget

        fileprivate var isExact: Bool {
            if case .code = self { return false }
            return true
        }
    }

    private static let omission =
        "this address has used up its explanations for now; a few more come each second"

    static func make(
        _ refusal: Refusal, dialect: ResponseDialect, disclosure: Disclosure, text: RefusalText? = nil,
        event: EventID, now: Int64
    ) -> ServerResponse {
        switch dialect {
        case .problem: problem(refusal, disclosure: disclosure, text: text, event: event, now: now)
        case .legacy: legacy(refusal, disclosure: disclosure, text: text, event: event)
        }
    }

    /// The app's refusal text replaces the gateway's own text, but not the exact reason that developers
    /// receive.
    private static func detail(
        of refusal: Refusal, disclosing disclosure: Disclosure, text: RefusalText?
    ) -> String? {
        if disclosure.isExact, !refusal.detail.isEmpty { return refusal.detail }
        if let text { return text.text }
        return isHarmless(refusal.code) && !refusal.detail.isEmpty ? refusal.detail : nil
    }

    private static func fields(for text: RefusalText?) -> [ServerResponse.Field] {
        var fields: [ServerResponse.Field] = [.init("Cache-Control", value: "no-store")]
        if let text, text.language != .anyOther {
            fields.append(.init("Content-Language", value: text.language.description))
        }
        return fields
    }

    /// `application/problem+json` with a stable code, and an instance that the log contains.
    private static func problem(
        _ refusal: Refusal, disclosure: Disclosure, text: RefusalText?, event: EventID, now: Int64
    ) -> ServerResponse {
        let code = refusal.code
        var members: [(name: String, value: JSONValue)] = [
            ("type", "about:blank"), ("title", .string(code.title)), ("status", .integer(Int64(code.status))),
            ("code", .string(code.name)), ("instance", .string(event.text)),
        ]
        if let detail = detail(of: refusal, disclosing: disclosure, text: text) {
            members.append(("detail", .string(detail)))
        }
        if code == .stale { members.append(("time", .integer(now))) }
        switch disclosure {
        case .code, .reason: break
        case .explanation(let explanation):
            members.append(("explain", explanation.json(longest: longestStage)))
        case .overBudget: members.append(("explain_omitted", .string(omission)))
        }
        if let done = refusal.previousStatus { members.append(("done_status", .integer(Int64(done)))) }
        if let link = refusal.link { members.append(("update_url", .string(link))) }
        if let ended = refusal.endedSession { members += ended.members(at: .integer(ended.at)) }
        if let work = refusal.work { members.append(("work", work.json)) }
        if let progress = refusal.refreshProgress { members += progress.members }
        var fields = fields(for: text)
        if let seconds = refusal.retryAfter { fields.append(.init("Retry-After", value: String(seconds))) }
        return ServerResponse(
            status: code.status, type: "application/problem+json", fields: fields,
            body: JSONValue.object(members).bytes)
    }

    /// Clients of form-md5 look for `err` in a successful answer only, so the status is always 200. Source:
    /// docs/protocol.md, "Answers".
    private static func legacy(
        _ refusal: Refusal, disclosure: Disclosure, text: RefusalText?, event: EventID
    ) -> ServerResponse {
        let code = refusal.code
        var message = detail(of: refusal, disclosing: disclosure, text: text) ?? code.title
        switch disclosure {
        case .explanation(let explanation):
            if let cause = explanation.cause {
                message += ". \(cause.sentence) (\(cause.code)): \(cause.remedy)"
            }
        case .overBudget: message += ". Not explained: \(omission)"
        case .code, .reason: break
        }
        var members: [(name: String, value: JSONValue)] = [
            ("code", .integer(Int64(code.legacyNumber))), ("msg", .string(message)),
            ("eventId", .string(code == .updateRequired ? refusal.link ?? "" : event.text)),
        ]
        if let ended = refusal.endedSession {
            members += ended.members(at: .string(CivilTime.rfc3339Text(ended.at)))
        }
        let body: JSONValue = ["err": .object(members)]
        return ServerResponse(
            status: 200, type: "application/json", fields: fields(for: text), body: body.bytes)
    }

    /// A refusal of an unsigned call of a login route. Has the code's own status where clients and
    /// intermediate proxies interpret that status, and `Retry-After`.
    static func unsignedLegacy(_ refusal: Refusal, text: RefusalText?, event: EventID) -> ServerResponse {
        var answer = legacy(refusal, disclosure: .code, text: text, event: event)
        switch refusal.code {
        case .tooManyAttempts, .unavailable: answer.status = refusal.code.status
        default: break
        }
        if let seconds = refusal.retryAfter {
            answer.fields.append(.init("Retry-After", value: String(seconds)))
        }
        return answer
    }

    /// Bytes of each stage that an answer shows.
    private static let longestStage = 16 << 10

    /// Reasons that reveal only how to write HTTP.
    private static func isHarmless(_ code: Refusal.Code) -> Bool {
        switch code {
        case .malformed, .tooLarge, .timeout, .unsigned, .stale: true
        default: false
        }
    }
}

extension WorkOffer {
    fileprivate var json: JSONValue {
        [
            "challenge": encoded(challenge), "puzzles": .integer(Int64(puzzles)),
            "hashes": .integer(Int64(hashes)), "expires": .integer(expires),
        ]
    }
}

extension Refusal.RefreshProgress {
    fileprivate var members: [(name: String, value: JSONValue)] {
        [
            ("counter", .integer(counter)), ("epoch", .integer(Int64(epoch))),
            ("transcript", .string(Base64.encode(transcript.span, as: .url))),
        ]
    }
}

extension Refusal.EndedSession {
    /// `at` is the time in the dialect's format.
    fileprivate func members(at: JSONValue) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = [("reason", .string(reason)), ("at", at)]
        if let by { members.append(("by", .string(by))) }
        return members
    }
}
