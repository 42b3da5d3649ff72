import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignTransport
import CountersignWire

/// What the client's commands work with: the profile, its vault and its server.
struct ClientDesk: Sendable {
    let name: String
    let folder: ProfileFolder
    let profile: Profile
    let origin: Origin
    let installation: Installation
    var surroundings: Surroundings

    static let profileOption = Option.value(
        "profile", "P", "the server and key to use (COUNTERSIGN_PROFILE, else default)")

    static func profileName(_ run: Invocation) -> String {
        run.arguments.value("profile") ?? run.environment["COUNTERSIGN_PROFILE"] ?? "default"
    }

    init(_ run: Invocation, shown: ShownAnswer? = nil) throws(Fault) {
        let name = ClientDesk.profileName(run)
        let folder = try ProfileFolder(name, run.environment)
        let (profile, key) = try folder.read()
        try self.init(name: name, folder: folder, profile, key, shown: shown)
    }

    init(
        name: String, folder: ProfileFolder, _ profile: Profile, _ key: SigningKey, shown: ShownAnswer? = nil
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
        let line = try ServerLine(profile, shown == nil ? .within(ServerTransport.patience) : .whileItMoves)
        surroundings = Surroundings(
            transport: ServerTransport(line: line, shown: shown),
            keeper: try ProfileVault.keeper(folder, host: origin.authority), time: DeviceTime(), random: SystemRandom())
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
