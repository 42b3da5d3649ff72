import CountersignSeal
import CountersignWire
import Glibc
import Synchronization

/// L1 as the field checks it, with a login of rung md5 and the tokens among the parameters. Source: legacy, L1.
///
/// What is wrong with it, each as it is found in the field:
/// - `sign` covers values as they are, joined by `&`: one value may swallow the parameters that sort behind it.
/// - It is a bare MD5 with the key in its middle: who has one `sign` can go on from it (length extension).
/// - It is checked by a C module that is given the body as a C string, and so ends at a raw NUL; the application reads on.
/// - It covers the form of a POST; the application reads the query as well, and where a name comes twice takes the last.
/// - Numbers and times are read by `sscanf`, which does not mind what follows.
/// - `rand` is for decoration. Method, path and host are not signed. `sign` is compared byte by byte.
struct FieldFormMD5: FieldScheme {
    static let window: Int64 = 300

    let app: AppKey
    let versions: RetiredVersions
    let database: FieldDatabase
    let tokens: FieldTokens

    init(_ app: AppKey, _ versions: RetiredVersions, _ database: FieldDatabase) {
        self.app = app
        self.versions = versions
        self.database = database
        tokens = FieldTokens(database: database)
    }

    func page(_ request: RawRequest) throws(StageFault) -> RawResponse? {
        guard request.path.hasPrefix("/login/") else { return nil }
        if let refusal = refusal(of: request) { return refusal }
        guard request.path == "/login/login.php" else { return try tokens.page(request) }
        let form = FieldParameters(request)
        let user = try database.user(form["username"] ?? "", keptPassword: form["password"] ?? "")
        guard let user else { return RawResponse(json: ["userId": 0]) }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(StageFault) -> FieldCaller {
        if let refusal = refusal(of: request) { return .refused(refusal) }
        let parameters = FieldParameters(request)
        return try tokens.caller(parameters["token"], userID: parameters["userId"] ?? "", parameters)
    }

    func kept(_ password: String) -> String? { FieldHashing.md5(password) }

    private func refusal(of request: RawRequest) -> RawResponse? {
        let signed = FieldFormMD5.signed(in: request)
        func text(_ name: String) -> String { String(decoding: signed[Array(name.utf8)] ?? [], as: UTF8.self) }
        guard FieldHashing.isSame(text("app_id"), app.id) else { return FieldAnswer.err(-2, "unknown app_id") }
        if versions.isRetired(app.id) { return FieldAnswer.err(-99, "this version is retired") }
        guard FieldHashing.isSame(text("sign"), sign(signed)) else { return FieldAnswer.badSignature }
        guard let time = FieldFormMD5.time(text("timestamp")), abs(time - Int64(Glibc.time(nil))) <= FieldFormMD5.window
        else { return FieldAnswer.err(-3, "the timestamp is too old") }
        return nil
    }

    /// Each name once, with its last value, as the module's own reader has them.
    private static func signed(in request: RawRequest) -> [[UInt8]: [UInt8]] {
        let text = request.method == "POST" ? Array(request.body.prefix { $0 != 0 }) : Array((request.query ?? "").utf8)
        return Dictionary(FieldParameters.formBytes(text).map { ($0.name, $0.value) }) { _, last in last }
    }

    private func sign(_ signed: [[UInt8]: [UInt8]]) -> String {
        var signed = signed
        signed[Array("sign".utf8)] = nil
        signed[Array("private_key".utf8)] = Array(app.secret.fieldText.utf8)
        let sorted = signed.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return FieldHashing.md5(
            Array(sorted.map { $0.key + Array("=".utf8) + $0.value }.joined(separator: Array("&".utf8))))
    }

    /// The beginning of the text, as far as it is made of figures and their separators.
    private static func time(_ text: String) -> Int64? {
        let digits = Array(text.utf8.prefix { (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x3A })
        return CivilTime(digits.span)?.seconds
    }
}

/// Versions of an app that their maker has sent away. Of all schemes of the field only form-md5 has such a thing: the `app_id` is deleted.
/// Part of the server's configuration, which a restart does not touch.
final class RetiredVersions: Sendable {
    private let ids = Mutex<Set<String>>([])

    func isRetired(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }
    func retire(_ id: String) { ids.withLock { _ = $0.insert(id) } }
    func bringBack(_ id: String) { ids.withLock { _ = $0.remove(id) } }
}
