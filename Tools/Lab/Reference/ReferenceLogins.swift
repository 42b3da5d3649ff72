import CountersignSeal
import CountersignWire
import Glibc

/// A login over TLS at a server that uses a slow password hash but reveals which accounts exist: it answers
/// an unknown name at once and in other words, a wrong password only after hashing. It stores tokens in plain
/// text and does not limit attempts. Source: docs/protocol.md, "Bearer sessions".
struct ReferencePasswordLogin: ReferenceScheme {
    let database: ReferenceDatabase
    let tokens: ReferenceTokens

    init(_ database: ReferenceDatabase) {
        self.database = database
        tokens = ReferenceTokens(database: database)
    }

    func page(_ request: RawRequest) throws(LabError) -> RawResponse? {
        guard request.path == "/login/login.php" else { return try tokens.page(request) }
        let form = LenientParameters.body(of: request)
        guard let user = try database.user(form["username"] ?? "") else {
            return RawResponse(json: ["userId": 0, "msg": "no such user"])
        }
        guard try ReferencePasswordLogin.matches(stored: user.password, password: form["password"] ?? "")
        else {
            return RawResponse(json: ["userId": 0, "msg": "wrong password"])
        }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(LabError) -> ReferenceCaller {
        try tokens.caller(bearing: request.bearerToken, parameters: LenientParameters(request))
    }

    /// Argon2id of about twenty milliseconds, with a salt: ``PasswordHash/encoded`` in hexadecimal.
    func storedForm(of password: String) throws(LabError) -> String? {
        do {
            let hash = try PasswordHash(of: ReferencePasswordLogin.secret(password), cost: .standard)
            return hash.encoded.withExposedBytes { Hex.encode($0) }
        } catch {
            throw LabError("no memory to hash a password in")
        }
    }

    /// Whether the password matches the stored hash. Attacks on a stolen database use it as well.
    package static func matches(stored kept: String, password: String) throws(LabError) -> Bool {
        guard let bytes = Hex.decode(kept), let hash = PasswordHash(encoded: Secret(copying: bytes.span))
        else {
            throw LabError("not a password's hash: \(kept)")
        }
        do {
            return try hash.matches(ReferencePasswordLogin.secret(password)) == .equal
        } catch {
            throw LabError("no memory to hash a password in")
        }
    }

    private static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
}

/// The login ladder on one rung, followed by tokens. On every rung but the last, the stored value is the
/// value that clients send, so that a copy of the database or of the traffic suffices to sign in. Attempts
/// are not limited.
/// Source: docs/protocol.md, "The login ladder".
struct ReferenceLadderLogin: ReferenceScheme {
    let rung: RowProfile.LadderRung
    /// The app's salt or key.
    let key: String
    let database: ReferenceDatabase
    let tokens: ReferenceTokens

    init(_ rung: RowProfile.LadderRung, key: String, database: ReferenceDatabase) {
        self.rung = rung
        self.key = key
        self.database = database
        tokens = ReferenceTokens(database: database)
    }

    func page(_ request: RawRequest) throws(LabError) -> RawResponse? {
        guard request.path == path else { return try tokens.page(request) }
        let form =
            rung == .plainGet ? LenientParameters.query(of: request) : LenientParameters.body(of: request)
        guard let user = try user(named: form["username"] ?? "", sending: form["password"] ?? "") else {
            return RawResponse(json: ["userId": 0])
        }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(LabError) -> ReferenceCaller {
        try tokens.caller(bearing: request.bearerToken, parameters: LenientParameters(request))
    }

    private var path: String { rung == .hmacMD5Time ? "/login/loginhmac.php" : "/login/login.php" }

    private func user(named name: String, sending sent: String) throws(LabError) -> ReferenceDatabase.User? {
        switch rung {
        case .plainGet, .plainPost, .md5, .md5Salt, .hmacMD5:
            return try database.user(name, keptPassword: sent)
        case .base64:
            // Clients do not escape the value, so that a plus sign arrives as a space.
            return try database.user(name, keptPassword: String(sent.map { $0 == " " ? "+" : $0 }))
        case .hmacMD5Time:
            guard let user = try database.user(name) else { return nil }
            // Accepts the values of this minute and of the one before, any number of times.
            let now = Int64(time(nil))
            let values = [now, now - 60].map { value(user.password, at: $0) }
            return values.contains { ReferenceHash.isEqual($0, to: sent) } ? user : nil
        }
    }

    func storedForm(of password: String) -> String? {
        switch rung {
        case .plainGet, .plainPost: return password
        case .base64:
            let bytes = Array(password.utf8)
            return Base64.encode(bytes.span, as: .standard)
        case .md5: return ReferenceHash.md5(password)
        case .md5Salt: return ReferenceHash.md5(password + key)
        case .hmacMD5: return ReferenceHash.md5(ReferenceHash.hmacMD5(password, key: key))
        case .hmacMD5Time: return ReferenceHash.hmacMD5(password, key: ReferenceHash.md5(key))
        }
    }

    /// The value that clients of the last rung send in the minute of `time`.
    private func value(_ kept: String, at time: Int64) -> String {
        let minute = CivilTime(seconds: time).minuteText
        return ReferenceHash.hmacMD5(
            kept + String(decoding: minute, as: UTF8.self), key: ReferenceHash.md5(key))
    }
}

/// A backend in migration to the gateway: newer versions of its app sign, and the backend takes the user from
/// `Countersign-Account`; older versions use open routes with the backend's own tokens. If a request has
/// both, `Countersign-Account` decides. Source: docs/protocol.md, "To the upstream" and "Routes of the
/// backend".
struct ReferenceOpenRouteBackend: ReferenceScheme {
    private let own: ReferencePasswordLogin

    init(_ database: ReferenceDatabase) { own = ReferencePasswordLogin(database) }

    func storedForm(of password: String) throws(LabError) -> String? { try own.storedForm(of: password) }

    func page(_ request: RawRequest) throws(LabError) -> RawResponse? { try own.page(request) }

    func caller(_ request: RawRequest) throws(LabError) -> ReferenceCaller {
        guard let account = request.fields["countersign-account"], !account.isEmpty else {
            return try own.caller(request)
        }
        guard account.hasPrefix("name:") else { return .refused(ReferenceRefusal.sessionOver) }
        return .known(name: String(account.dropFirst(5)), LenientParameters(request))
    }
}
