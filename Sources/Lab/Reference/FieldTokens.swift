import CountersignSeal
import CountersignWire
import Glibc

/// L6 as the field has it: a login token for getting tokens, and a token for two hours; both kept as they are, one pair a user, so that a
/// second login ends the first. Source: legacy, L6.
struct FieldTokens: Sendable {
    static let lifetime: Int64 = 7200

    let database: FieldDatabase

    /// The answer to a login that succeeded.
    func answer(to user: FieldDatabase.User) throws(StageFault) -> RawResponse {
        let (token, loginToken) = (FieldTokens.new(), FieldTokens.new())
        try database.file.rows(
            "INSERT OR REPLACE INTO tokens(user, token, expires, login_token) VALUES(?, ?, ?, ?)", .integer(user.id),
            .text(token), .integer(Int64(time(nil)) + FieldTokens.lifetime), .text(loginToken))
        return RawResponse(json: [
            "userId": .integer(user.id), "token": .string(token), "loginToken": .string(loginToken),
            "expiresIn": .integer(FieldTokens.lifetime),
        ])
    }

    /// `POST /login/token.php` with `loginToken`; nil for other paths.
    func page(_ request: RawRequest) throws(StageFault) -> RawResponse? {
        guard request.path == "/login/token.php" else { return nil }
        let loginToken = FieldParameters(request)["loginToken"] ?? ""
        let row = try database.file.rows("SELECT user FROM tokens WHERE login_token = ?", .text(loginToken)).first
        guard let user = row?[0].integer else { return FieldAnswer.sessionOver }
        let token = FieldTokens.new()
        try database.file.rows(
            "UPDATE tokens SET token = ?, expires = ? WHERE user = ?", .text(token),
            .integer(Int64(time(nil)) + FieldTokens.lifetime), .integer(user))
        return RawResponse(json: ["token": .string(token), "expiresIn": .integer(FieldTokens.lifetime)])
    }

    /// Whose token it is. `userID` is what the caller says beside it, where the scheme has him say so.
    func caller(
        _ token: String?, userID: String? = nil, _ parameters: FieldParameters
    ) throws(StageFault) -> FieldCaller {
        guard let token else { return .refused(FieldAnswer.sessionOver) }
        let row = try database.file.rows(
            "SELECT users.name, expires, users.id FROM tokens JOIN users ON users.id = user WHERE token = ?",
            .text(token)
        ).first
        guard let row, let name = row[0].text, let expires = row[1].integer, let id = row[2].integer else {
            return .refused(FieldAnswer.sessionOver)
        }
        if let userID, Int64(userID) != id { return .refused(FieldAnswer.sessionOver) }
        // The clients of this server hold login tokens, all of them.
        guard expires > Int64(time(nil)) else { return .refused(FieldAnswer.tokenRanOut) }
        return .known(name: name, parameters)
    }

    private static func new() -> String {
        let bytes = SystemRandom().bytes(16)
        return Hex.encode(bytes.span)
    }
}

extension RawRequest {
    /// What stands behind `Bearer` in `Authorization`.
    var bearerToken: String? {
        guard let field = fields["authorization"], field.lowercased().hasPrefix("bearer ") else { return nil }
        return String(field.dropFirst(7))
    }
}
