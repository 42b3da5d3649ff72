import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc
import Testing

/// A clock that stands still.
struct FixedTime: TimeSource {
    var now: Int64
}

/// Keys held in a table.
struct KeyTable: ReleaseSource {
    var keys: [KeyID: AppRelease]

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? { keys[id] }
}

/// The refusal that `body` throws; nil if it succeeds.
func refusal(_ body: () throws -> Void) -> Refusal? {
    do {
        try body()
        return nil
    } catch {
        return error as? Refusal ?? Refusal(.timeout, detail: "not a refusal: \(error)")
    }
}

/// The code of the refusal that `body` throws.
func code(_ body: () throws -> Void) -> Refusal.Code? { refusal(body)?.code }

/// A folder of its own for a test, removed with it.
final class Folder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/countersign-test-XXXXXX".utf8CString)
        path = try #require(mkdtemp(&template).map { String(cString: $0) })
    }

    deinit {
        for name in ["replay", "replay.lock", "replay.new", "replay.growing", "boot"] {
            unlink("\(path)/\(name)")
        }
        rmdir(path)
    }

    func write(_ text: String, to name: String) throws {
        let file = try #require(fopen("\(path)/\(name)", "w"))
        fputs(text, file)
        fclose(file)
    }
}

func secret(_ text: String) -> Secret {
    let bytes = Array(text.utf8)
    return Secret(copying: bytes.span)
}

/// One app with a key for each scheme, and a gate before it.
struct Deployment {
    static let now: Int64 = 1_800_000_000
    static let authority = "api.example.com"

    let folder: Folder
    let gate: Gate
    let replay: ReplayFile
    let messages: Credentials
    let forms: Credentials
    /// Of auth-v1, auth-v2 and auth-v4.
    let auth: [SchemeName: Credentials]
    let amazon: Credentials

    init(
        at now: Int64 = Deployment.now, retirement: AppRelease.Retirement? = nil,
        policy change: (inout Policy) -> Void = { _ in }
    ) throws {
        var policy = Policy()
        policy.schemes = [.messageSignatures, .formMD5, .sigV4, .authV1, .authV2, .authV4]
        change(&policy)
        let messageID = try #require(KeyID("r_messages"))
        let formID = try #require(KeyID("formApp1"))
        let messageKey = AppRelease(
            id: messageID, app: "shop", platform: "ios", version: "1.0", scheme: .messageSignatures,
            policy: policy,
            retirement: retirement, key: SigningKey(secret("the message key")))
        let formKey = AppRelease(
            id: formID, app: "shop", platform: "ios", version: "1.0", scheme: .formMD5, policy: policy,
            retirement: retirement, key: SigningKey(secret("the form key")))
        let amazonID = try #require(KeyID("AKIDEXAMPLE"))
        let amazonKey = AppRelease(
            id: amazonID, app: "shop", platform: "ios", version: "1.0", scheme: .sigV4, policy: policy,
            retirement: retirement, key: SigningKey(secret("the sigv4 key")))
        var keys = [messageID: messageKey, formID: formKey, amazonID: amazonKey]
        var auth: [SchemeName: Credentials] = [:]
        for scheme in [SchemeName.authV1, .authV2, .authV4] {
            let id = try #require(KeyID("\(scheme.rawValue)-app"))
            let key = AppRelease(
                id: id, app: "shop", platform: "ios", version: "1.0", scheme: scheme, policy: policy,
                retirement: retirement, key: SigningKey(secret("the \(scheme.rawValue) key")))
            keys[id] = key
            auth[scheme] = Credentials(keyID: id, key: key.key)
        }
        self.auth = auth
        folder = try Folder()
        var settings = ReplayFile.Settings()
        settings.window = SchemeName.authV1.traits.defaultWindow
        replay = try ReplayFile(path: folder.path + "/replay", expecting: nil, settings: settings, now: now)
        gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority, "other.example.com"]),
            keys: KeyTable(keys: keys), replay: replay, clock: FixedTime(now: now))
        messages = Credentials(keyID: messageID, key: messageKey.key)
        amazon = Credentials(keyID: amazonID, key: amazonKey.key)
        forms = Credentials(keyID: formID, key: formKey.key, platform: "ios", version: "1.0")
    }

    /// A signed request of any scheme.
    func signed(
        _ scheme: SchemeName, at: Int64 = Deployment.now, nonce: String,
        _ change: (inout Draft) -> Void = { _ in }
    ) throws -> Request {
        var draft = Draft(method: "POST", target: Array("/call?x=1".utf8), authority: Deployment.authority)
        change(&draft)
        let signer =
            switch scheme {
            case .sigV4: amazon
            case .formMD5: forms
            default: auth[scheme] ?? messages
            }
        try #require(SchemeRegistry.standard.scheme(named: scheme)).sign(
            &draft, as: signer, at: at, nonce: nonce)
        return draft.request()
    }

    /// The refusal; nil where the request was accepted.
    func refusal(of request: Request) async -> Refusal? {
        do {
            _ = try await gate.judge(request)
            return nil
        } catch {
            return error
        }
    }
}
