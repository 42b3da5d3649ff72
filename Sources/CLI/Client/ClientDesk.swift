import Countersign
import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

/// What the client's commands work with: the profile, and the SDK's client under its settings.
struct ClientDesk: Sendable {
    let name: String
    let profile: Profile
    let origin: Origin
    let client: CountersignClient
    /// What the vault is, for people.
    let backEnd: String

    static let profileOption = Option.value(
        "profile", "P", "the server and key to use (COUNTERSIGN_PROFILE, else default)")

    static func profileName(_ run: Invocation) -> String {
        run.arguments.value("profile") ?? run.environment["COUNTERSIGN_PROFILE"] ?? "default"
    }

    /// `device` is how this machine presents itself at a login.
    init(
        _ run: Invocation, device: DeviceDescription? = nil, passwordLogin: CountersignOptions.PasswordLogin = .never
    ) throws(Fault) {
        let name = ClientDesk.profileName(run)
        let folder = try ProfileFolder(name, run.environment)
        let (profile, key) = try folder.read()
        try self.init(
            run, name: name, folder: folder, profile, key, device: device, passwordLogin: passwordLogin)
    }

    init(
        _ run: Invocation, name: String, folder: ProfileFolder, _ profile: Profile, _ key: SigningKey,
        device: DeviceDescription? = nil, passwordLogin: CountersignOptions.PasswordLogin = .never
    ) throws(Fault) {
        guard profile.scheme == .messageSignatures else {
            throw Fault(
                .failed,
                "profile \(name): signs with \(profile.scheme.rawValue); accounts and sessions need message-signatures")
        }
        self.name = name
        self.profile = profile
        (origin, _) = try Origin.split(profile.url)
        let vault = try ProfileVault(profile, folder, run)
        backEnd = vault.backEnd
        var options = try profile.options(for: origin)
        if let device { options.device = device }
        options.passwordLogin = passwordLogin
        options.use(profile.deviceKeys, run.environment)
        let trust = try profile.trust(for: origin)
        do throws(CountersignError) {
            client = try CountersignClient(
                release: try profile.release(key), baseURL: profile.url, vault: .using(vault.vault),
                trust: trust, options: options)
        } catch {
            throw ClientDesk.fault(error, name, origin)
        }
    }

    /// Runs one of the client's steps and says what went wrong with it.
    func perform<Result: Sendable>(
        _ step: @escaping @Sendable (CountersignClient) async throws(CountersignError) -> Result
    ) throws(Fault) -> Result {
        let (name, origin, client) = (name, origin, client)
        return try Waiting.run { () async throws(Fault) in
            do throws(CountersignError) {
                return try await step(client)
            } catch {
                throw ClientDesk.fault(error, name, origin)
            }
        }
    }

    /// What is kept here about who is signed in; nil for nobody.
    func login() throws(Fault) -> SignedIn? {
        try perform { (client) throws(CountersignError) in try await client.kept().login }
    }

    /// Whether a profile's vault, before it is given up, holds somebody's session.
    static func isSignedIn(_ profile: Profile, _ vault: ProfileVault) throws(Fault) -> Bool {
        let (origin, _) = try Origin.split(profile.url)
        let item = try item(profile, origin)
        do throws(ClientProblem) {
            return try StateKeeper(vault.vault, item).look().login != nil
        } catch {
            throw ProfileVault.fault(.failed("\(CountersignError(error))"))
        }
    }

    /// Under which name its vault has who is signed in.
    static func item(_ profile: Profile, _ origin: Origin) throws(Fault) -> ItemName {
        do throws(ClientProblem) {
            return try StateKeeper.item(host: origin.authority, app: profile.app)
        } catch {
            throw ProfileVault.fault(.failed("\(CountersignError(error))"))
        }
    }
}
