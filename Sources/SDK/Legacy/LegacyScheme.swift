import CountersignClient
import CountersignSchemes
import CountersignSeal

/// How a server that is not Countersign's yet expects requests to be signed. Source: docs/protocol.md, which
/// has a section for each scheme and its flaws.
///
/// The secrets are in the app's binary: an attacker who takes it apart has them. None of these schemes signs
/// a response.
public struct LegacyScheme: Sendable {
    let signing: LegacySigningMethod
    /// Where a request of this scheme carries its token, as its existing clients do.
    let tokens: LegacyOptions.TokenPlace

    /// No signature: for servers that check the token alone.
    public static let unsigned = LegacyScheme(signing: .none, tokens: .authorizationField)

    /// Form parameters under an MD5: `form-md5`. Signs GET and HEAD by their query, POST by its form body or
    /// the fields of its multipart body (the files in it are not signed), and nothing else.
    /// - Parameters:
    ///   - appID: `app_id`: 1 to 64 visible ASCII characters.
    ///   - privateKey: `private_key`, as text.
    ///   - platform: `plat`: `ios`, `android`…
    ///   - version: `ver`: the app's.
    ///   - zone: seconds east of UTC of the wall clock that is sent.
    ///   - key: where the private key stands before the MD5 is made; the server's team knows.
    public static func formMD5(
        appID: String, privateKey: String, platform: String, version: String, zone: Int = 0,
        key: FormMD5Key = .pair
    ) throws(CountersignError) -> LegacyScheme {
        var credentials = try credentials(purpose: "form-md5: app id", id: appID, secret: privateKey)
        guard !platform.isEmpty, !version.isEmpty else {
            throw .misuse("form-md5: expected a platform and a version")
        }
        guard abs(zone) <= LegacyScheme.mostZone else {
            throw .misuse("form-md5: zone: expected seconds east of UTC, 18 hours at most")
        }
        (credentials.platform, credentials.version, credentials.timezoneOffset) = (platform, version, zone)
        credentials.formMD5Key = key == .pair ? .pair : .appended
        return LegacyScheme(signing: .scheme(FormMD5(), credentials), tokens: .formParameters)
    }

    /// Where form-md5's private key is in the text whose MD5 is the signature.
    public enum FormMD5Key: Sendable {
        /// Among the parameters, as `private_key=KEY`, sorted by its name.
        case pair
        /// Behind the last parameter, with nothing between.
        case appended
    }

    /// HMAC-SHA256 over the parameters of query or form, with a signed timestamp: `auth-v1`. For any other
    /// body the MD5 is signed.
    public static func authV1(key: String, secret: String) throws(CountersignError) -> LegacyScheme {
        try hmac(AuthV1(), purpose: "auth-v1: key", id: key, secret: secret)
    }

    /// The same with `auth_version=2`, whose timestamp is not signed: `auth-v2`.
    public static func authV2(clientID: String, secret: String) throws(CountersignError) -> LegacyScheme {
        try hmac(AuthV2(), purpose: "auth-v2: client id", id: clientID, secret: secret)
    }

    /// HMAC-SHA256 in fields of its own, over the members of a JSON body: `auth-v4`. Signs no other bodies.
    public static func authV4(clientID: String, secret: String) throws(CountersignError) -> LegacyScheme {
        try hmac(AuthV4(), purpose: "auth-v4: client id", id: clientID, secret: secret)
    }

    /// Any scheme, with credentials that were parsed already.
    package static func speaking(_ scheme: some Scheme, as credentials: Credentials) -> LegacyScheme {
        LegacyScheme(signing: .scheme(scheme, credentials), tokens: .authorizationField)
    }

    /// The greatest distance of a zone from UTC, seconds.
    static let mostZone = 18 * 3600

    private static func hmac(
        _ scheme: some Scheme, purpose what: String, id: String, secret: String
    ) throws(CountersignError) -> LegacyScheme {
        LegacyScheme(
            signing: .scheme(scheme, try credentials(purpose: what, id: id, secret: secret)),
            tokens: .authorizationField)
    }

    private static func credentials(
        purpose what: String, id: String, secret: String
    ) throws(CountersignError) -> Credentials {
        guard let keyID = KeyID(id) else {
            throw .misuse("\(what): expected 1 to 64 visible ASCII characters")
        }
        guard !secret.isEmpty else { throw .misuse("\(what): expected a secret") }
        return Credentials(keyID: keyID, key: SigningKey(Secret(copying: Array(secret.utf8).span)))
    }
}
