import CountersignClient
import CountersignVault
import CountersignWire

extension Vault {
    /// Puts in what a login leaves, so that a client over this vault is signed in, and signs its requests: for tests over a
    /// ``MockTransport``. No server knows the session, nobody can renew it, and what needs the authority's signed answer fails as it
    /// would with a forged one.
    ///
    /// `host` is the client's, with its port where that does not go without saying; `app` as in its release key. `until` is in whole Unix
    /// seconds.
    public func pretend(
        _ account: String, isSignedInTo host: String, app: String? = nil, until: Int64 = .max
    ) throws {
        let keeper = StateKeeper(self, try StateKeeper.item(host: host, app: app))
        try keeper.makeUpSession(of: AccountName(normalizing: account), app: app, expires: until)
    }
}
