import Countersign
import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignWire

/// What the client's commands work with: the profile, and the SDK's client under its settings.
struct ProfileSession: Sendable {
    let name: String
    let profile: Profile
    let origin: Origin
    let client: CountersignClient

    /// How long a command waits for the server to be told of sign-outs; what it is not told stays in the
    /// vault.
    private static let patience = Duration.seconds(5)

    static let profileOption = Option.value(
        "profile", placeholder: "P", meaning: "the server and key to use (COUNTERSIGN_PROFILE, else default)")

    static func profileName(_ run: Invocation) -> String {
        run.arguments.value("profile") ?? run.environment["COUNTERSIGN_PROFILE"] ?? "default"
    }

    /// `device` is how this machine presents itself at a login.
    init(
        _ run: Invocation, device: DeviceDescription? = nil,
        passwordLogin: CountersignOptions.PasswordLogin = .never
    ) throws(OperationalError) {
        let name = ProfileSession.profileName(run)
        let folder = try ProfileFolder(name, environment: run.environment)
        let (profile, key) = try folder.read()
        try self.init(
            run, name: name, folder: folder, profile: profile, key: key, device: device,
            passwordLogin: passwordLogin)
    }

    init(
        _ run: Invocation, name: String, folder: ProfileFolder, profile: Profile, key: SigningKey,
        device: DeviceDescription? = nil, passwordLogin: CountersignOptions.PasswordLogin = .never
    ) throws(OperationalError) {
        guard profile.scheme == .messageSignatures else {
            throw OperationalError(
                .failed,
                message:
                    "profile \(name): signs with \(profile.scheme.rawValue); accounts and sessions need "
                    + "message-signatures"
            )
        }
        self.name = name
        self.profile = profile
        (origin, _) = try Origin.split(profile.url)
        let vault = try ProfileVault(profile, folder: folder, run: run)
        var options = try profile.options(for: origin)
        if let device { options.device = device }
        options.passwordLogin = passwordLogin
        let trust = try profile.trust(for: origin)
        do {
            client = try CountersignClient(
                release: try profile.release(key), baseURL: profile.url, vault: .using(vault.vault),
                trust: trust, options: options)
        } catch {
            throw ProfileSession.operationalError(for: error, profile: name, origin: origin)
        }
    }

    /// Runs one of the client's steps and says what went wrong with it.
    func perform<Result: Sendable>(
        _ step: @escaping @Sendable (CountersignClient) async throws(CountersignError) -> Result
    ) throws(OperationalError) -> Result {
        let (name, origin, client) = (name, origin, client)
        return try BlockingTask.run { () async throws(OperationalError) in
            do throws(CountersignError) {
                let result = try await step(client)
                await client.finishLogOuts(within: ProfileSession.patience)
                return result
            } catch {
                await client.finishLogOuts(within: ProfileSession.patience)
                throw ProfileSession.operationalError(for: error, profile: name, origin: origin)
            }
        }
    }

    /// The login that is stored here; nil if there is none.
    func login() throws(OperationalError) -> ActiveLogin? { try state().login }

    /// The client's state as it is stored here.
    func state() throws(OperationalError) -> PersistedState {
        try perform { (client) throws(CountersignError) in try await client.kept() }
    }

    /// Whether the vault of a profile that is to be removed holds a session.
    static func isSignedIn(_ profile: Profile, in vault: ProfileVault) throws(OperationalError) -> Bool {
        let (origin, _) = try Origin.split(profile.url)
        let item = try itemName(of: profile, at: origin)
        do {
            return try StateKeeper(vault.vault, item: item).readVault().login != nil
        } catch {
            throw OperationalError(.failed, message: "the profile's vault: \(CountersignError(error))")
        }
    }

    /// The name of the vault's item for the login.
    static func itemName(of profile: Profile, at origin: Origin) throws(OperationalError) -> ItemName {
        do {
            return try StateKeeper.item(host: origin.authority, app: profile.app)
        } catch {
            throw OperationalError(.failed, message: "the profile's vault: \(CountersignError(error))")
        }
    }
}

/// What went wrong at the client, in a sentence that says what to do.
extension ProfileSession {
    static func operationalError(for error: CountersignError, profile: String, origin: Origin)
        -> OperationalError
    {
        switch error {
        case .notSignedIn:
            OperationalError(
                .failed,
                message:
                    "profile \(profile): no account is signed in; `countersign login --profile "
                    + "\(profile)` signs in"
            )
        case .signedOut(let end):
            OperationalError(
                .failed,
                message:
                    "the session has ended: \(reason(end)); `countersign login --profile "
                    + "\(profile)` signs in again"
            )
        case .accountChanged:
            OperationalError(
                .failed,
                message:
                    "profile \(profile): another account has signed in meanwhile; nothing was sent in its "
                    + "name")
        case .refused(let refusal): OperationalError(.failed, message: text(of: refusal, profile: profile))
        case .updateRequired(let url):
            OperationalError(
                .failed,
                message: "refused: update-required: the server wants the app's next version"
                    + (url.map { "; the new version is at \($0)" } ?? ""))
        case .transport(let error) where error.fate == .outcomeUnknown:
            OperationalError(
                .unreachable,
                message:
                    "\(error.operationalError(at: origin).message); the outcome is unknown, and the request "
                    + "was not sent again"
            )
        case .transport(let error): error.operationalError(at: origin)
        case .certificateNotPinned:
            OperationalError(
                .failed,
                message: """
                    profile \(profile): the server's certificate is not pinned, so an attacker with a \
                    certificate for its name could take the password or the token; nothing was sent. Pin the \
                    certificate by `countersign profile add` with --pin or --ca, or accept any certificate \
                    with --bearer-secrets-to-any-certificate
                    """)
        case .unusableName, .unusablePassword: OperationalError(.usage, message: error.description)
        case .misuse(let detail): OperationalError(.failed, message: "profile \(profile): \(detail)")
        case .presenceNeeded:
            OperationalError(
                .failed, message: "profile \(profile): the device's key requires the user's presence")
        case .vaultLocked(let detail):
            OperationalError(.failed, message: "profile \(profile): its vault is locked: \(detail)")
        case .vaultFailed(let detail):
            OperationalError(.failed, message: "profile \(profile): its vault: \(detail)")
        case .deviceKeyUnavailable(let detail):
            OperationalError(.failed, message: "profile \(profile): the device's keys: \(detail)")
        default: OperationalError(.failed, message: error.description)
        }
    }

    private static func text(of refusal: CountersignError.Refusal, profile: String) -> String {
        var text = "refused: \(refusal)"
        if refusal.code == Refusal.Code.unknownKey.rawValue {
            text += "; if this lasts, sign in again: `countersign login --profile \(profile)`"
        }
        return text
    }

    /// Why a session is over, as far as it was told.
    static func reason(_ end: SessionEnd) -> String {
        let reason =
            switch end.how {
            case .replaced(let by): "replaced by a login on another device" + (by.map { " (\($0))" } ?? "")
            case .other("unknown"): "the server did not say why"
            default: end.description
            }
        return reason + (end.at.map { ", \(TimeText.text($0))" } ?? "")
    }
}
