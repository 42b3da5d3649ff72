import CountersignSeal
import CountersignWire
import Glibc

/// A typical server's database: passwords in the form that ``ReferenceScheme/storedForm(of:)`` gives, tokens
/// in plain text.
struct ReferenceDatabase: Sendable {
    let file: LabDatabase

    init(path: String) throws(LabError) {
        file = try LabDatabase(
            path: path,
            schema: """
                CREATE TABLE IF NOT EXISTS users(
                    id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, password TEXT NOT NULL);
                CREATE TABLE IF NOT EXISTS tokens(
                    user INTEGER PRIMARY KEY, token TEXT NOT NULL, expires INTEGER NOT NULL,
                    login_token TEXT NOT NULL);
                """)
    }

    struct User: Sendable {
        var id: Int64
        var name: String
        var password: String
    }

    func add(_ user: User) throws(LabError) {
        try file.query(
            "INSERT INTO users(id, name, password) VALUES(?, ?, ?)", binding: .integer(user.id),
            .text(user.name),
            .text(user.password))
    }

    func user(_ name: String) throws(LabError) -> User? {
        try file.query("SELECT id, name, password FROM users WHERE name = ?", binding: .text(name)).first.map(
            ReferenceDatabase.user)
    }

    func user(_ id: Int64) throws(LabError) -> User? {
        try file.query("SELECT id, name, password FROM users WHERE id = ?", binding: .integer(id)).first.map(
            ReferenceDatabase.user)
    }

    /// The single query of many login pages: an unknown name and a wrong password have the same result.
    func user(_ name: String, keptPassword: String) throws(LabError) -> User? {
        try file.query(
            "SELECT id, name, password FROM users WHERE name = ? AND password = ?", binding: .text(name),
            .text(keptPassword)
        ).first.map(ReferenceDatabase.user)
    }

    private static func user(_ row: [LabDatabase.Value]) -> User {
        User(id: row[0].integer ?? 0, name: row[1].text ?? "", password: row[2].text ?? "")
    }
}

/// Tokens as commonly implemented: a login token that obtains tokens, and a token for two hours. Both are
/// stored in plain text, one pair for each user, so that a second login ends the first session. Source:
/// docs/protocol.md, "Bearer sessions".
struct ReferenceTokens: Sendable {
    static let lifetime: Int64 = 7200

    let database: ReferenceDatabase

    /// The response to a successful login.
    func answer(to user: ReferenceDatabase.User) throws(LabError) -> RawResponse {
        let (token, loginToken) = (ReferenceTokens.new(), ReferenceTokens.new())
        try database.file.query(
            "INSERT OR REPLACE INTO tokens(user, token, expires, login_token) VALUES(?, ?, ?, ?)",
            binding: .integer(user.id),
            .text(token), .integer(Int64(time(nil)) + ReferenceTokens.lifetime), .text(loginToken))
        return RawResponse(json: [
            "userId": .integer(user.id), "token": .string(token), "loginToken": .string(loginToken),
            "expiresIn": .integer(ReferenceTokens.lifetime),
        ])
    }

    /// `POST /login/token.php` with `loginToken`; nil for other paths.
    func page(_ request: RawRequest) throws(LabError) -> RawResponse? {
        guard request.path == "/login/token.php" else { return nil }
        let loginToken = LenientParameters(request)["loginToken"] ?? ""
        let row = try database.file.query(
            "SELECT user FROM tokens WHERE login_token = ?", binding: .text(loginToken)
        ).first
        guard let user = row?[0].integer else { return ReferenceRefusal.sessionOver }
        let token = ReferenceTokens.new()
        try database.file.query(
            "UPDATE tokens SET token = ?, expires = ? WHERE user = ?", binding: .text(token),
            .integer(Int64(time(nil)) + ReferenceTokens.lifetime), .integer(user))
        return RawResponse(json: ["token": .string(token), "expiresIn": .integer(ReferenceTokens.lifetime)])
    }

    /// The account that the token belongs to. `userID` is the user number that the request states beside the
    /// token, in schemes that have one; it must match.
    func caller(
        bearing token: String?, userID: String? = nil, parameters: LenientParameters
    ) throws(LabError) -> ReferenceCaller {
        guard let token else { return .refused(ReferenceRefusal.sessionOver) }
        let row = try database.file.query(
            "SELECT users.name, expires, users.id FROM tokens JOIN users ON users.id = user WHERE token = ?",
            binding: .text(token)
        ).first
        guard let row, let name = row[0].text, let expires = row[1].integer, let id = row[2].integer else {
            return .refused(ReferenceRefusal.sessionOver)
        }
        if let userID, Int64(userID) != id { return .refused(ReferenceRefusal.sessionOver) }
        // Every client of this server holds a login token, and so can renew.
        guard expires > Int64(time(nil)) else { return .refused(ReferenceRefusal.tokenRanOut) }
        return .known(name: name, parameters)
    }

    private static func new() -> String {
        let bytes = SystemRandom().bytes(16)
        return Hex.encode(bytes.span)
    }
}

extension RawRequest {
    /// The token after `Bearer` in `Authorization`.
    var bearerToken: String? {
        guard let field = fields["authorization"], field.lowercased().hasPrefix("bearer ") else { return nil }
        return String(field.dropFirst(7))
    }
}
