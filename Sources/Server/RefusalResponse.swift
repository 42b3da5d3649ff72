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
        indirect case explanation(Explanation)
        /// The address has used up its budget for explanations: the reason alone.
        case overBudget

        fileprivate var addsNoMember: Bool {
            switch self {
            case .code, .reason: true
            case .explanation, .overBudget: false
            }
        }

        fileprivate var isExact: Bool {
            if case .code = self { return false }
            return true
        }
    }

    private static let omission =
        "this address has used up its explanations for now; a few more come each second"

    /// Writes the response; ``make(_:dialect:disclosure:text:event:now:)`` makes a value of the same bytes.
    static func write(
        _ refusal: Refusal, dialect: ResponseDialect, disclosure: Disclosure, text: RefusalText? = nil,
        event: EventID, trace: TraceID? = nil, now: Int64, to response: ResponseBytes
    ) {
        switch dialect {
        case .problem:
            writeProblem(
                refusal, disclosure: disclosure, text: text, event: event, trace: trace, now: now,
                to: response)
        case .legacy: writeLegacy(refusal, disclosure: disclosure, text: text, event: event, to: response)
        }
    }

    static func make(
        _ refusal: Refusal, dialect: ResponseDialect, disclosure: Disclosure, text: RefusalText? = nil,
        event: EventID, now: Int64
    ) -> ServerResponse {
        let response = ResponseBytes()
        write(
            refusal, dialect: dialect, disclosure: disclosure, text: text, event: event, now: now,
            to: response)
        return ServerResponse(response)
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

    private static func appendFields(
        _ type: StaticString, text: RefusalText?, retryAfter: Int?, to response: ResponseBytes
    ) {
        response.fields.append(type)
        response.fields.append("Cache-Control: no-store\r\n")
        if let text, text.language != .anyOther {
            response.fields.append("Content-Language: \(text.language)\r\n")
        }
        if let retryAfter { response.fields.append("Retry-After: \(retryAfter)\r\n") }
    }

    /// The beginning of a problem document of each code, up to the event.
    private static let problemStarts: [[UInt8]] = Refusal.Code.allCases.map { code in
        let members: JSONValue = [
            "type": "about:blank", "title": .string(code.title), "status": .integer(Int64(code.status)),
            "code": .string(code.name), "instance": "",
        ]
        return members.bytes.dropLast(2)
    }

    /// `application/problem+json` with a stable code, and an instance that the log contains.
    private static func writeProblem(
        _ refusal: Refusal, disclosure: Disclosure, text: RefusalText?, event: EventID, trace: TraceID?,
        now: Int64, to response: ResponseBytes
    ) {
        let code = refusal.code
        response.begin(status: code.status)
        appendFields(
            "Content-Type: application/problem+json\r\n", text: text, retryAfter: refusal.retryAfter,
            to: response)
        let start = problemStarts[code.ordinal]
        response.body.append(start.span)
        let identifier = event.bytes
        response.body.append(identifier.span)
        response.body.append("\"")
        if let detail = detail(of: refusal, disclosing: disclosure, text: text) {
            response.body.append(",\"detail\":")
            response.body.append(json: detail)
        }
        if code == .stale {
            response.body.append(",\"time\":")
            response.body.append(decimal: now)
        }
        if let trace {
            response.body.append(",\"trace\":")
            response.body.append(json: trace.text)
        }
        if disclosure.addsNoMember, refusal.isPlain { return response.body.append("}") }
        for member in rareMembers(of: refusal, disclosing: disclosure) {
            response.body.append(",\"\(member.name)\":")
            let value = member.value.bytes
            response.body.append(value.span)
        }
        response.body.append("}")
    }

    /// The members that few refusals have.
    private static func rareMembers(
        of refusal: Refusal, disclosing disclosure: Disclosure
    ) -> [(name: String, value: JSONValue)] {
        var members: [(name: String, value: JSONValue)] = []
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
        return members
    }

    /// Clients of form-md5 look for `err` in a successful answer only, so the status is always 200. Source:
    /// docs/protocol.md, "Answers".
    private static func writeLegacy(
        _ refusal: Refusal, disclosure: Disclosure, text: RefusalText?, event: EventID,
        retryAfter: Int? = nil, to response: ResponseBytes
    ) {
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
        let body = JSONValue.object([("err", .object(members))]).bytes
        response.begin(status: 200)
        appendFields(
            "Content-Type: application/json\r\n", text: text, retryAfter: retryAfter, to: response)
        response.body.append(body.span)
    }

    /// A refusal of an unsigned call of a login route. Has the code's own status where clients and
    /// intermediate proxies interpret that status, and `Retry-After`.
    static func unsignedLegacy(_ refusal: Refusal, text: RefusalText?, event: EventID) -> ServerResponse {
        let response = ResponseBytes()
        writeLegacy(
            refusal, disclosure: .code, text: text, event: event, retryAfter: refusal.retryAfter,
            to: response)
        switch refusal.code {
        case .tooManyAttempts, .unavailable: response.status = refusal.code.status
        default: break
        }
        return ServerResponse(response)
    }

    /// Bytes of each stage that an answer shows.
    private static let longestStage = 16 << 10

    /// Reasons that reveal only how to write HTTP.
    private static func isHarmless(_ code: Refusal.Code) -> Bool {
        switch code {
        case .malformed, .tooLarge, .timeout, .unsigned, .stale, .rateLimited, .maintenance: true
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
