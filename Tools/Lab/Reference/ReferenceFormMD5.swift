import CountersignMemory
import CountersignSeal
import CountersignWire
import Glibc

/// form-md5 as commonly implemented, with a login of rung md5 and the token among the parameters. Source:
/// docs/protocol.md, "`form-md5`".
///
/// Its flaws, each of which occurs in deployed servers:
/// - `sign` covers unescaped values, joined by `&`: one value may contain the parameters that sort after it.
/// - It is a plain MD5 with the key in the middle, so that a valid `sign` can be extended without the key
///   (length extension).
/// - A C module checks it and takes the body as a C string, which ends at a raw NUL; the application reads
///   the bytes after it, too.
/// - It covers the form of a POST; the application reads the query as well, and takes the last of two
///   parameters of the same name.
/// - Numbers and times are parsed by `sscanf`, which ignores trailing text.
/// - `rand` is not checked. Method, path and host are not signed. `sign` is compared byte by byte.
struct ReferenceFormMD5: ReferenceScheme {
    static let window: Int64 = 300

    let app: AppKey
    let versions: RetiredVersions
    let database: ReferenceDatabase
    let tokens: ReferenceTokens

    init(app: AppKey, versions: RetiredVersions, database: ReferenceDatabase) {
        self.app = app
        self.versions = versions
        self.database = database
        tokens = ReferenceTokens(database: database)
    }

    func page(_ request: RawRequest) throws(LabError) -> RawResponse? {
        guard request.path.hasPrefix("/login/") else { return nil }
        if let refusal = refusal(of: request) { return refusal }
        guard request.path == "/login/login.php" else { return try tokens.page(request) }
        let form = LenientParameters(request)
        let user = try database.user(form["username"] ?? "", keptPassword: form["password"] ?? "")
        guard let user else { return RawResponse(json: ["userId": 0]) }
        return try tokens.answer(to: user)
    }

    func caller(_ request: RawRequest) throws(LabError) -> ReferenceCaller {
        if let refusal = refusal(of: request) { return .refused(refusal) }
        let parameters = LenientParameters(request)
        return try tokens.caller(
            bearing: parameters["token"], userID: parameters["userId"] ?? "", parameters: parameters)
    }

    func storedForm(of password: String) -> String? { ReferenceHash.md5(password) }

    private func refusal(of request: RawRequest) -> RawResponse? {
        let signed = ReferenceFormMD5.signed(in: request)
        func text(_ name: String) -> String {
            String(decoding: signed[Array(name.utf8)] ?? [], as: UTF8.self)
        }
        guard ReferenceHash.isEqual(text("app_id"), to: app.id) else {
            return ReferenceRefusal.error(code: -2, message: "unknown app_id")
        }
        if versions.isRetired(app.id) {
            return ReferenceRefusal.error(code: -99, message: "this version is retired")
        }
        guard ReferenceHash.isEqual(text("sign"), to: sign(signed)) else {
            return ReferenceRefusal.badSignature
        }
        guard let time = ReferenceFormMD5.time(text("timestamp")),
            abs(time - Int64(Glibc.time(nil))) <= ReferenceFormMD5.window
        else { return ReferenceRefusal.error(code: -3, message: "the timestamp is too old") }
        return nil
    }

    /// Each name once, with its last value, as the C module parses them.
    private static func signed(in request: RawRequest) -> [[UInt8]: [UInt8]] {
        let text =
            request.method == "POST"
            ? Array(request.body.prefix { $0 != 0 }) : Array((request.query ?? "").utf8)
        return Dictionary(LenientParameters.formBytes(text).map { ($0.name, $0.value) }) { _, last in last }
    }

    private func sign(_ signed: [[UInt8]: [UInt8]]) -> String {
        var signed = signed
        signed[Array("sign".utf8)] = nil
        signed[Array("private_key".utf8)] = Array(app.secret.exposedText.utf8)
        let sorted = signed.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return ReferenceHash.md5(
            Array(sorted.map { $0.key + Array("=".utf8) + $0.value }.joined(separator: Array("&".utf8))))
    }

    /// Parses the leading digits, hyphens and colons as a time.
    private static func time(_ text: String) -> Int64? {
        let digits = Array(text.utf8.prefix { (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x3A })
        return CivilTime(digits.span)?.seconds
    }
}

/// Retired versions of an app. Of all legacy schemes only form-md5 can retire one: its `app_id` is deleted.
/// The list is part of the server's configuration, which survives a restart.
final class RetiredVersions: Sendable {
    private let ids = Locked<Set<String>>([])

    func isRetired(_ id: String) -> Bool { ids.with { $0.contains(id) } }
    func retire(_ id: String) { ids.with { _ = $0.insert(id) } }
    func bringBack(_ id: String) { ids.with { _ = $0.remove(id) } }
}
