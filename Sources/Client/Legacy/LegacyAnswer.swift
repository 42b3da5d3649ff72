import CountersignWire

/// For who reads a legacy server's answer before it is judged.
package enum LegacyAnswers {
    /// Bytes of a body that may be a refusal.
    package static let mostToJudge = LegacyAnswer.most

    /// Whether a body that begins so may be a refusal, under whatever status.
    package static func mayRefuse(_ body: [UInt8]) -> Bool {
        guard body.count <= mostToJudge else { return false }
        guard let first = body.first(where: { !LegacyAnswer.isSpace($0) }) else { return true }
        return first == UInt8(ascii: "{")
    }

    /// The code of a refusal in the protocol's word; nil for all else.
    package static func code(of response: Response) -> String? { LegacyAnswer.refusal(response)?.code }
}

/// What a legacy server's answer says beside its content. Source: docs/protocol.md, "Answers"; legacy, L1 and L6.
enum LegacyAnswer {
    /// The codes that a client acts upon.
    enum Directive: Sendable {
        /// `-101`: a new token, and the same request again.
        case tokenRanOut(Notice)
        /// `-100`: the login page.
        case loginNeeded(Notice)
        /// `-99`: the update page.
        case updateNeeded(Notice)
    }

    /// Error texts are short: what is longer than this is content, and is not looked into.
    static let most = 1 << 16

    static func directive(_ response: Response, _ unauthorized: LegacyTokens.Unauthorized) -> Directive? {
        if let notice = refusal(response) {
            switch notice.code {
            case Refusal.Code.tokenExpired.rawValue: return .tokenRanOut(notice)
            case Refusal.Code.sessionEnded.rawValue: return .loginNeeded(notice)
            case Refusal.Code.updateRequired.rawValue: return .updateNeeded(notice)
            default: return nil
            }
        }
        guard response.status == 401, case .tokenRanOut = unauthorized else { return nil }
        return .tokenRanOut(Notice(response))
    }

    /// `{"err":{…}}` under any status, as form-md5 has it, or problem details with a code of ours, as a gateway of ours answers the
    /// other schemes. Nil for all else: it is the backend's.
    static func refusal(_ response: Response) -> Notice? {
        let body = response.message.body
        guard body.count <= most, let first = body.first(where: { !isSpace($0) }), first == UInt8(ascii: "{") else {
            return nil
        }
        guard let document = try? JSONReader.read(body) else { return nil }
        if let err = document.root["err"] { return notice(err, in: document, status: response.status) }
        guard response.status >= 400 else { return nil }
        let notice = Notice(response)
        return Refusal.Code.allCases.contains { $0.name == notice.code } ? notice : nil
    }

    /// `{"code":C,"msg":"…","eventId":"…"}`; `eventId` is the update link under `-99`.
    private static func notice(_ err: JSON, in document: JSONDocument, status: Int) -> Notice? {
        guard let number = err["code"].flatMap({ document.integer($0, in: -1000...(-1)) }),
            let code = Refusal.Code.allCases.first(where: { $0.legacyNumber == number })
        else { return nil }
        var notice = Notice(status: status)
        notice.code = code.name
        notice.title = err["msg"]?.string ?? ""
        notice.reason = err["reason"]?.string
        notice.by = err["by"]?.string
        if let event = err["eventId"]?.string {
            if code == .updateRequired { notice.updateURL = event } else { notice.instance = event }
        }
        return notice
    }

    fileprivate static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
