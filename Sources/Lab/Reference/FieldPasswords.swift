import CountersignSeal
import CountersignWire

/// A login over TLS at a server that hashes its passwords slowly, as it should, and gives away who has an account, as so many do: a name that
/// it does not know is answered at once, and in other words, a wrong password once it is hashed. Its tokens are kept as they are, and
/// nothing limits the attempts. Source: legacy, L6.
struct FieldPasswords: FieldScheme {
    let database: FieldDatabase
    let tokens: FieldTokens

    init(_ database: FieldDatabase) {
        self.database = database
        tokens = FieldTokens(database: database)
    }

    func page(_ request: RawRequest) throws(StageFault) -> RawResponse? {
        guard request.path == "/login/login.php" else { return try tokens.page(request) }
        let form = FieldParameters.body(of: request)
        guard let user = try database.user(form["username"] ?? "") else {
            return RawResponse(json: ["userId": 0, "msg": "no such user"])
        }
        guard try FieldPasswords.opens(user.password, form["password"] ?? "") else {
            return RawResponse(json: ["userId": 0, "msg": "wrong password"])
        }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(StageFault) -> FieldCaller {
        try tokens.caller(request.bearerToken, FieldParameters(request))
    }

    /// Argon2id of some twenty milliseconds, with a salt. What is kept is the layout of ``PasswordHash``, in hexadecimal.
    func kept(_ password: String) throws(StageFault) -> String? {
        do throws(PasswordHash.OutOfMemory) {
            let hash = try PasswordHash(of: FieldPasswords.secret(password), cost: .standard)
            return hash.encoded.withExposedBytes { Hex.encode($0) }
        } catch {
            throw StageFault("no memory to hash a password in")
        }
    }

    /// Whether the password is the one that is kept. For who has stolen what is kept, too.
    package static func opens(_ kept: String, _ password: String) throws(StageFault) -> Bool {
        guard let bytes = Hex.decode(kept), let hash = PasswordHash(encoded: Secret(copying: bytes.span)) else {
            throw StageFault("not a password's hash: \(kept)")
        }
        do throws(PasswordHash.OutOfMemory) {
            return try hash.matches(FieldPasswords.secret(password)) == .equal
        } catch {
            throw StageFault("no memory to hash a password in")
        }
    }

    private static func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
}
