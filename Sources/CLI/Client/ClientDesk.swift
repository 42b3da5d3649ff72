import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignTransport
import CountersignVault
import CountersignWire

/// What the client's commands work with: the profile, its vault and its server.
struct ClientDesk: Sendable {
    let name: String
    let folder: ProfileFolder
    let profile: Profile
    let origin: Origin
    let installation: Installation
    let surroundings: Surroundings
    /// What the vault is, for people.
    let backEnd: String

    static let profileOption = Option.value(
        "profile", "P", "the server and key to use (COUNTERSIGN_PROFILE, else default)")

    static func profileName(_ run: Invocation) -> String {
        run.arguments.value("profile") ?? run.environment["COUNTERSIGN_PROFILE"] ?? "default"
    }

    init(_ run: Invocation, shown: ShownAnswer? = nil) throws(Fault) {
        let name = ClientDesk.profileName(run)
        let folder = try ProfileFolder(name, run.environment)
        let (profile, key) = try folder.read()
        try self.init(run, name: name, folder: folder, profile, key, shown: shown)
    }

    init(
        _ run: Invocation, name: String, folder: ProfileFolder, _ profile: Profile, _ key: SigningKey,
        shown: ShownAnswer? = nil
    ) throws(Fault) {
        guard profile.scheme == .messageSignatures else {
            throw Fault(
                .failed,
                "profile \(name): signs with \(profile.scheme.rawValue); accounts and sessions need message-signatures")
        }
        self.name = name
        self.folder = folder
        self.profile = profile
        (origin, _) = try Origin.split(profile.url)
        var installation = Installation(
            host: origin.authority, transport: origin.transport,
            release: Credentials(keyID: profile.keyID, key: key), userAgent: "countersign/\(Product.version)",
            channel: profile.pins.isEmpty && profile.certificates == nil ? .open : .pinned)
        if let prefix = profile.prefix { installation.prefix = prefix }
        installation.app = profile.app
        installation.bearerSecrets = profile.bearerSecrets
        if let bytes = profile.authorityKey {
            do {
                installation.authorityKey = SigningKey(try PublicKey(ed25519: bytes))
            } catch {
                throw Fault(.failed, "profile \(name): authority_key: expected \(error.expected)")
            }
        }
        self.installation = installation
        let own = try ProfileVault(profile, folder, run)
        let vault = own.vault
        backEnd = own.backEnd
        let line = try ServerLine(profile, shown == nil ? .within(ServerTransport.patience) : .whileItMoves)
        surroundings = Surroundings(
            transport: ServerTransport(line: line, shown: shown),
            keeper: try ClientDesk.keeper(vault, profile, origin), time: DeviceTime(), random: SystemRandom())
    }

    private static func keeper(_ vault: Vault, _ profile: Profile, _ origin: Origin) throws(Fault) -> StateKeeper {
        StateKeeper(vault, try item(profile, origin))
    }

    /// Under which name its vault has who is signed in.
    static func item(_ profile: Profile, _ origin: Origin) throws(Fault) -> ItemName {
        do {
            return try StateKeeper.item(host: origin.authority, app: profile.app)
        } catch {
            throw ClientDesk.fault(error, origin.description)
        }
    }

    /// Whether a profile's vault, before it is given up, holds somebody's session.
    static func isSignedIn(_ profile: Profile, _ vault: ProfileVault) throws(Fault) -> Bool {
        let (origin, _) = try Origin.split(profile.url)
        do {
            return try keeper(vault.vault, profile, origin).look().login != nil
        } catch {
            throw (error as? Fault) ?? Fault(.failed, "\(error)")
        }
    }

    /// What is kept here about who is signed in; nil for nobody.
    func login() throws(Fault) -> SignedIn? { try state().login }

    func state() throws(Fault) -> ClientState {
        do {
            return try surroundings.keeper.look()
        } catch {
            throw ClientDesk.fault(error, name)
        }
    }

    /// Runs one of the client's steps and says what went wrong with it.
    func perform<Result: Sendable>(
        _ step: @escaping @Sendable (Installation, Surroundings) async throws(ClientProblem) -> Result
    ) throws(Fault) -> Result {
        let (name, installation, surroundings) = (name, installation, surroundings)
        return try Waiting.run { () async throws(Fault) in
            do throws(ClientProblem) {
                return try await step(installation, surroundings)
            } catch {
                throw ClientDesk.fault(error, name)
            }
        }
    }
}
