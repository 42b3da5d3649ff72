import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault

/// An app's way to a server that is **not Countersign's yet**: signs requests by the scheme that it speaks, signs users in by its login, and
/// renews their token unseen. For a team that changes the app first, and the server later; the same client then goes on at a gateway
/// that serves the scheme, until ``CountersignClient`` takes its place.
///
/// ```swift
/// let client = try LegacyClient(
///     scheme: .formMD5(appID: "…", privateKey: "…", platform: "ios", version: "3.1"),
///     baseURL: "https://api.example.com", login: LegacyLogin(.md5Salt("…")), vault: .platform,
///     trust: [.host("api.example.com", pins: ["sha256/…"], backups: ["sha256/…"])])
/// try await client.logIn("anna", password)
/// let (data, response) = try await client.data(for: APIRequest("/orders"))
/// ```
///
/// Nothing that such a server answers is signed. Only TLS speaks for it, and where no certificate is pinned, whoever any authority of the
/// machine's vouches for can end a session, stop the app by asking for an update, or have a request sent a second time by saying that its
/// token ran out. ``CountersignClient`` believes none of that without a signature.
public final class LegacyClient: Sendable {
    let base: BaseURL
    let options: LegacyOptions
    let account: LegacyAccount
    let calls: LegacyCalls
    let vault: LegacyVault
    let carrier: any Carrier
    let report: LegacyReport
    let names: CallNames
    let hints: UpdateHints
    /// Nil where nobody has to be present.
    let presence: LegacyPresence?

    /// Opens nothing, and sends nothing: the vault is read at the first call.
    /// - Parameters:
    ///   - scheme: how requests are signed.
    ///   - baseURL: `https://HOST`, with a port and a path where need be.
    ///   - login: how users sign in; nil where they do not, or where the app hands over what they have (``adopt(_:)``).
    ///   - vault: where the session is kept.
    ///   - trust: whom to take for the server.
    ///   - options: everything else.
    public init(
        scheme: LegacyScheme, baseURL: String, login: LegacyLogin? = nil, vault: VaultPlace, trust: Trust,
        options: LegacyOptions = LegacyOptions()
    ) throws(CountersignError) {
        let parts = try LegacyComposition(scheme, baseURL, login, vault, trust, options)
        (base, account, self.vault, carrier) = (parts.base, parts.account, parts.vault, parts.carrier)
        (report, presence, self.options) = (parts.report, parts.presence, options)
        names = CallNames(host: parts.base.origin.host.description)
        hints = UpdateHints(parts.report.events)
        calls = LegacyCalls(account)
    }

    /// To be called before the account is asked for anything that lies in the vault.
    func open() async throws(LegacyProblem) {
        do throws(VaultProblem) {
            try await vault.open()
        } catch {
            await account.learn(error)
            throw .vault(error)
        }
    }

    deinit { report.finish() }

    /// What to show now.
    public var state: CountersignState { report.state }

    /// What to show, from now on: the current state first, then each change. For any number of listeners. Ends when the client does.
    public var states: AsyncStream<CountersignState> { report.states }

    /// What the client does, from now on, for a log. For any number of listeners; of one who is slow, the
    /// oldest of over a thousand go. Holds no secrets: a path is told without its query, where form-md5 has
    /// the token. Ends when the client does.
    public var events: AsyncStream<CountersignEvent> { report.events.stream() }
}
