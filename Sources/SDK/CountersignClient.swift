import CountersignTransport
import CountersignTrust
import CountersignVault

/// An app's way to its server: signs each request in the name of the app's version and of who is signed in, renews the session
/// unseen, and believes only what the server has signed.
///
/// ```swift
/// let key = try ReleaseKey(id: "r_…", secret: "…", authorityKey: "…")
/// let client = try Client(
///     release: key, baseURL: "https://api.example.com", vault: .platform,
///     trust: [.host("**.example.com", pins: ["sha256/…"], backups: ["sha256/…"])])
/// await client.resume()
/// let (data, response) = try await client.data(for: APIRequest("/orders"))
/// ```
///
/// One for each server, shared by the whole app. A request that is on its way outlives the value that sent it.
public final class CountersignClient: Sendable {
    let core: ClientCore
    /// Signs for the device, where its key is bound to presence and somebody is present: of clients that
    /// ``withPresence(_:_:)`` gives out.
    let signer: PassingSigner?

    /// Opens nothing, and sends nothing: the vault is read at the first call.
    /// - Parameters:
    ///   - release: the key of this version of the app.
    ///   - baseURL: `https://HOST`, with a port and a path where need be. Nothing is sent or signed for what does not lie below.
    ///   - vault: where the session is kept.
    ///   - trust: whom to take for the server.
    ///   - options: everything else.
    public convenience init(
        release: ReleaseKey, baseURL: String, vault: VaultPlace, trust: Trust,
        options: CountersignOptions = CountersignOptions()
    ) throws(CountersignError) {
        self.init(core: ClientCore(try Composition(release, baseURL, vault, trust, options)))
    }

    init(core: ClientCore, signer: PassingSigner? = nil) {
        self.core = core
        self.signer = signer
    }
}
