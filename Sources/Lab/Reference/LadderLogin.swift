import CountersignSeal
import CountersignWire
import Glibc

/// L5 on one rung, with tokens behind it. The server keeps what the table in legacy says, which on all rungs but the last is just what is
/// sent: who has the table, or has listened, signs in. Nothing limits the attempts. Source: legacy, L5.
struct LadderLogin: FieldScheme {
    let rung: RowProfile.LadderRung
    /// The app's salt or key.
    let key: String
    let database: FieldDatabase
    let tokens: FieldTokens

    init(_ rung: RowProfile.LadderRung, key: String, _ database: FieldDatabase) {
        self.rung = rung
        self.key = key
        self.database = database
        tokens = FieldTokens(database: database)
    }

    func page(_ request: RawRequest) throws(StageFault) -> RawResponse? {
        guard request.path == path else { return try tokens.page(request) }
        let form = rung == .plainGet ? FieldParameters.query(of: request) : FieldParameters.body(of: request)
        guard let user = try user(form["username"] ?? "", form["password"] ?? "") else {
            return RawResponse(json: ["userId": 0])
        }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(StageFault) -> FieldCaller {
        try tokens.caller(request.bearerToken, FieldParameters(request))
    }

    private var path: String { rung == .hmacMD5Time ? "/login/loginhmac.php" : "/login/login.php" }

    private func user(_ name: String, _ sent: String) throws(StageFault) -> FieldDatabase.User? {
        switch rung {
        case .plainGet, .plainPost, .md5, .md5Salt, .hmacMD5: return try database.user(name, keptPassword: sent)
        case .base64:
            // Clients do not escape: their plus has become a space on the way.
            return try database.user(name, keptPassword: String(sent.map { $0 == " " ? "+" : $0 }))
        case .hmacMD5Time:
            guard let user = try database.user(name) else { return nil }
            // This minute's value and the one before, as often as it comes.
            let now = Int64(time(nil))
            let values = [now, now - 60].map { value(user.password, at: $0) }
            return values.contains { FieldHashing.isSame($0, sent) } ? user : nil
        }
    }

    func kept(_ password: String) -> String? {
        switch rung {
        case .plainGet, .plainPost: return password
        case .base64:
            let bytes = Array(password.utf8)
            return Base64.encode(bytes.span, .standard)
        case .md5: return FieldHashing.md5(password)
        case .md5Salt: return FieldHashing.md5(password + key)
        case .hmacMD5: return FieldHashing.md5(FieldHashing.hmacMD5(password, key: key))
        case .hmacMD5Time: return FieldHashing.hmacMD5(password, key: FieldHashing.md5(key))
        }
    }

    /// What the last rung's clients send in the minute of a time.
    private func value(_ kept: String, at time: Int64) -> String {
        let minute = CivilTime(seconds: time).minuteText
        return FieldHashing.hmacMD5(kept + String(decoding: minute, as: UTF8.self), key: FieldHashing.md5(key))
    }
}
