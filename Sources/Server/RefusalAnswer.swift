import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// A refusal as its caller reads it: with an explanation where the app's policy says `debug`.
/// Source: docs/protocol.md, "Answers"; RFC 9457.
enum RefusalAnswer {
    /// How much of its reason a refusal tells.
    enum Disclosure {
        case code
        /// The reason, where there is no signature to explain.
        case reason
        case explanation(Explanation)
        /// The address has had as many explanations as it may have: the reason alone.
        case overBudget

        fileprivate var isExact: Bool {
            if case .code = self { return false }
            return true
        }
    }

    private static let omission = "this address has used up its explanations for now; a few more come each second"

    static func make(
        _ refusal: Refusal, dialect: AnswerDialect, _ disclosure: Disclosure, text: RefusalText? = nil,
        event: EventID, now: Int64
    ) -> Answer {
        switch dialect {
        case .problem: problem(refusal, disclosure, text, event, now)
        case .legacy: legacy(refusal, disclosure, text, event)
        }
    }

    /// What the app has its users told stands in place of our own words, but not of the exact reason that
    /// developers get.
    private static func detail(
        of refusal: Refusal, disclosing disclosure: Disclosure, text: RefusalText?
    ) -> String? {
        if disclosure.isExact, !refusal.detail.isEmpty { return refusal.detail }
        if let text { return text.text }
        return isHarmless(refusal.code) && !refusal.detail.isEmpty ? refusal.detail : nil
    }

    private static func fields(for text: RefusalText?) -> [Answer.Field] {
        var fields: [Answer.Field] = [.init("Cache-Control", "no-store")]
        if let text, text.language != .anyOther {
            fields.append(.init("Content-Language", text.language.description))
        }
        return fields
    }

    /// `application/problem+json` with a stable code, and an instance that is found in the log.
    private static func problem(
        _ refusal: Refusal, _ disclosure: Disclosure, _ text: RefusalText?, _ event: EventID, _ now: Int64
    ) -> Answer {
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
        case .explanation(let explanation): members.append(("explain", explanation.json(longest: longestStage)))
        case .overBudget: members.append(("explain_omitted", .string(omission)))
        }
        if let done = refusal.done { members.append(("done_status", .integer(Int64(done)))) }
        if let link = refusal.link { members.append(("update_url", .string(link))) }
        if let ended = refusal.ended { members += ended.members(at: .integer(ended.at)) }
        var fields = fields(for: text)
        if let seconds = refusal.retryAfter { fields.append(.init("Retry-After", String(seconds))) }
        return Answer(
            status: code.status, type: "application/problem+json", fields: fields,
            body: Array(JSONValue.object(members).text.utf8))
    }

    /// Form-md5's clients look for `err` in a successful answer only, so the status is always 200. Source: legacy, L1.
    private static func legacy(
        _ refusal: Refusal, _ disclosure: Disclosure, _ text: RefusalText?, _ event: EventID
    ) -> Answer {
        let code = refusal.code
        var message = detail(of: refusal, disclosing: disclosure, text: text) ?? code.title
        switch disclosure {
        case .explanation(let explanation):
            if let cause = explanation.cause { message += ". \(cause.sentence) (\(cause.code)): \(cause.remedy)" }
        case .overBudget: message += ". Not explained: \(omission)"
        case .code, .reason: break
        }
        var members: [(name: String, value: JSONValue)] = [
            ("code", .integer(Int64(code.legacyNumber))), ("msg", .string(message)),
            ("eventId", .string(code == .updateRequired ? refusal.link ?? "" : event.text)),
        ]
        if let ended = refusal.ended {
            members += ended.members(at: .string(CivilTime.internetText(ended.at)))
        }
        let body: JSONValue = ["err": .object(members)]
        return Answer(
            status: 200, type: "application/json", fields: fields(for: text), body: Array(body.text.utf8))
    }

    /// To an unsigned call of a login route. The same, but for a status that clients, and proxies on the way, know by itself.
    static func unsignedLegacy(_ refusal: Refusal, text: RefusalText?, event: EventID) -> Answer {
        var answer = legacy(refusal, .code, text, event)
        switch refusal.code {
        case .tooManyAttempts, .unavailable: answer.status = refusal.code.status
        default: break
        }
        if let seconds = refusal.retryAfter { answer.fields.append(.init("Retry-After", String(seconds))) }
        return answer
    }

    /// Bytes of each stage that an answer shows.
    private static let longestStage = 16 << 10

    /// Reasons that tell an attacker nothing but how to write HTTP.
    private static func isHarmless(_ code: Refusal.Code) -> Bool {
        switch code {
        case .malformed, .tooLarge, .timeout, .unsigned, .stale: true
        default: false
        }
    }
}

extension Refusal.Ended {
    /// `at` is the time as the dialect writes it.
    fileprivate func members(at: JSONValue) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = [("reason", .string(reason)), ("at", at)]
        if let by { members.append(("by", .string(by))) }
        return members
    }
}
