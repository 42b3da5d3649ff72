import CountersignSeal
import CountersignWire

/// A login's answer: `{"userId":N}`, N over 0, and the tokens where the server gives them out. Source: legacy, L5 and L6.
struct LoggedIn: Sendable {
    let userID: Int64
    let token: Secret?
    let loginToken: Secret?
    let expires: Int64?

    /// `at` is when it came, in Unix seconds by the device.
    init(_ response: Response, at now: Int64) throws(LegacyProblem) {
        let answer = try TokenAnswer(response, of: "login")
        guard let userID = answer.number("userId") else { throw .notUnderstood("login: expected `userId`, a number") }
        guard userID > 0 else { throw .wrongCredentials }
        self.userID = userID
        token = try answer.secret("token")
        loginToken = try answer.secret("loginToken")
        expires = answer.expires(from: now)
    }
}

/// `{"token":"…","expiresIn":7200}`.
struct RenewedToken: Sendable {
    let token: Secret
    /// Where the server gives out another with each token.
    let loginToken: Secret?
    let expires: Int64?

    init(_ response: Response, at now: Int64) throws(LegacyProblem) {
        let answer = try TokenAnswer(response, of: "token")
        guard let token = try answer.secret("token") else {
            throw .notUnderstood("token: expected `token`, a string")
        }
        self.token = token
        loginToken = try answer.secret("loginToken")
        expires = answer.expires(from: now)
    }
}

/// The members of such an answer; a refusal in its place is thrown.
private struct TokenAnswer {
    private let document: JSONDocument
    /// Names the answer in complaints.
    private let route: String

    init(_ response: Response, of route: String) throws(LegacyProblem) {
        self.route = route
        if let notice = LegacyAnswer.refusal(response) {
            switch notice.code {
            case Refusal.Code.wrongCredentials.rawValue: throw .wrongCredentials
            case Refusal.Code.updateRequired.rawValue: throw .updateRequired(notice)
            default: throw .refused(notice)
            }
        }
        guard response.status < 400 else { throw .refused(Notice(response)) }
        do {
            document = try JSONReader.read(response.message.body)
        } catch {
            throw .notUnderstood("\(route): the answer is not JSON: \(error)")
        }
    }

    func number(_ name: String) -> Int64? {
        document.root[name].flatMap { document.integer($0, in: 0...Int(Int64.max)) }.map(Int64.init)
    }

    /// Visible ASCII: it goes into a header field. Nil where it is not there.
    func secret(_ name: String) throws(LegacyProblem) -> Secret? {
        guard let member = document.root[name] else { return nil }
        guard let text = member.string, (1...4096).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .notUnderstood("\(route): `\(name)`: expected a token") }
        return Secret(copying: Array(text.utf8).span)
    }

    func expires(from now: Int64) -> Int64? {
        document.root["expiresIn"].flatMap { document.integer($0, in: 0...Int(UInt32.max)) }.map { now + Int64($0) }
    }
}
