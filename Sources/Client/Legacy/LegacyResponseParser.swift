import CountersignSeal
import CountersignWire

/// Reads what a legacy server's response says beside its content. Source: docs/protocol.md, "Answers" and
/// "Bearer sessions".
package enum LegacyResponseParser {
    /// The number of bytes of a body that may be a refusal. Error texts are short: a longer body is content,
    /// and is not parsed.
    package static let most = 1 << 16

    /// Whether a body that begins with these bytes may be a refusal, under any status.
    package static func mayRefuse(_ body: [UInt8]) -> Bool {
        guard body.count <= most else { return false }
        return body.first { !isSpace($0) }.map { $0 == UInt8(ascii: "{") } ?? true
    }

    /// The code of a refusal in the protocol's terms; nil for any other response.
    package static func code(of response: Response) -> String? { refusal(response)?.code }

    /// The codes that a client acts upon.
    enum Directive: Sendable {
        /// `-101`: get a new token and repeat the request.
        case tokenExpired(RefusalNotice)
        /// `-100`: show the login page.
        case loginNeeded(RefusalNotice)
        /// `-99`: show the update page.
        case updateNeeded(RefusalNotice)
    }

    static func directive(_ response: Response, unauthorized: LegacyTokens.Unauthorized) -> Directive? {
        if let notice = refusal(response) {
            switch notice.code {
            case Refusal.Code.tokenExpired.rawValue: return .tokenExpired(notice)
            case Refusal.Code.sessionEnded.rawValue, Refusal.Code.sessionRequired.rawValue:
                return .loginNeeded(notice)
            case Refusal.Code.updateRequired.rawValue: return .updateNeeded(notice)
            default: return nil
            }
        }
        guard response.status == 401, case .tokenExpired = unauthorized else { return nil }
        return .tokenExpired(RefusalNotice(response))
    }

    /// `{"err":{…}}` under any status, as form-md5 writes it, or problem details with a code of ours, as our
    /// gateway answers the other schemes. Nil for any other response: it is the backend's.
    static func refusal(_ response: Response) -> RefusalNotice? {
        let body = response.message.body
        guard mayRefuse(body), let document = try? JSONReader.read(body) else { return nil }
        if let err = document.root["err"] { return notice(err, in: document, status: response.status) }
        guard response.status >= 400 else { return nil }
        let notice = RefusalNotice(response)
        return Refusal.Code.allCases.contains { $0.name == notice.code } ? notice : nil
    }

    /// `{"code":C,"msg":"…","eventId":"…"}`; `eventId` is the update link under `-99`.
    private static func notice(_ err: JSON, in document: JSONDocument, status: Int) -> RefusalNotice? {
        guard let number = err["code"].flatMap({ document.integer($0, in: -1000...(-1)) }),
            let code = Refusal.Code.allCases.first(where: { $0.legacyNumber == number })
        else { return nil }
        var notice = RefusalNotice(status: status)
        notice.code = code.name
        notice.title = err["msg"]?.string ?? ""
        notice.reason = err["reason"]?.string
        notice.by = err["by"]?.string
        if let event = err["eventId"]?.string {
            if code == .updateRequired { notice.updateURL = event } else { notice.instance = event }
        }
        return notice
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}

/// The response to a login: `{"userId":N}`, N over 0, and the tokens if the server issues them. Source:
/// docs/protocol.md, "The login ladder".
struct LegacyLoginResponse: Sendable {
    let userID: Int64
    let token: Secret?
    let loginToken: Secret?
    let expires: Int64?
    let response: Response

    /// `at` is when it came, in Unix seconds by the device's clock.
    init(_ response: Response, at now: Int64) throws(ClientOperationError) {
        self.response = response
        let answer = try TokenResponseFields(response, of: "login")
        guard let userID = answer.number("userId") else {
            throw .notUnderstood("login: expected `userId`, a number")
        }
        guard userID > 0 else { throw .wrongCredentials }
        self.userID = userID
        token = try answer.secret("token")
        loginToken = try answer.secret("loginToken")
        expires = answer.expires(from: now)
    }
}

/// `{"token":"…","expiresIn":7200}`.
struct LegacyTokenResponse: Sendable {
    let token: Secret
    /// Set if the server issues another with each token.
    let loginToken: Secret?
    let expires: Int64?

    init(_ response: Response, at now: Int64) throws(ClientOperationError) {
        let answer = try TokenResponseFields(response, of: "token")
        guard let token = try answer.secret("token") else {
            throw .notUnderstood("token: expected `token`, a string")
        }
        self.token = token
        loginToken = try answer.secret("loginToken")
        expires = answer.expires(from: now)
    }
}

/// The members of such a response; throws if it is a refusal instead.
private struct TokenResponseFields {
    private let document: JSONDocument
    /// Names the response in error texts.
    private let route: String

    init(_ response: Response, of route: String) throws(ClientOperationError) {
        self.route = route
        if let notice = LegacyResponseParser.refusal(response) {
            switch notice.code {
            case Refusal.Code.wrongCredentials.rawValue: throw .wrongCredentials
            case Refusal.Code.updateRequired.rawValue: throw .updateRequired(notice)
            default: throw .refused(notice)
            }
        }
        guard response.status < 400 else { throw .refused(RefusalNotice(response)) }
        do {
            document = try JSONReader.read(response.message.body)
        } catch {
            throw .notUnderstood("\(route): the answer is not JSON: \(error)")
        }
    }

    func number(_ name: String) -> Int64? {
        document.root[name].flatMap { document.integer($0, in: 0...Int(Int64.max)) }.map(Int64.init)
    }

    /// Visible ASCII: it goes into a header field. Nil if it is absent.
    func secret(_ name: String) throws(ClientOperationError) -> Secret? {
        guard let member = document.root[name] else { return nil }
        guard let text = member.string, (1...4096).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .notUnderstood("\(route): `\(name)`: expected a token") }
        return Secret(copying: Array(text.utf8).span)
    }

    func expires(from now: Int64) -> Int64? {
        document.root["expiresIn"].flatMap { document.integer($0, in: 0...Int(UInt32.max)) }.map {
            now + Int64($0)
        }
    }
}
