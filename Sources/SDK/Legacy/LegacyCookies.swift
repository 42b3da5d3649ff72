import CountersignClient
import CountersignMemory
import CountersignTransport
import CountersignWire

/// A legacy client's cookies, and the account that they belong to: they are removed when the session ends or
/// another account signs in, and the response to that account's login may set the first new ones.
final class LegacyCookies: Sendable {
    private struct Owner: Equatable {
        let account: String
        let userID: Int64
    }

    let jar: CookieJar
    /// Where logins are sent, which decides the default path of the cookies that they set.
    private let loginTarget: [UInt8]
    /// Nil while no account is known to be signed in.
    private let owner = Locked<Owner?>(nil)

    init(_ jar: CookieJar, loginTarget: [UInt8]) { (self.jar, self.loginTarget) = (jar, loginTarget) }

    /// A login has begun a session.
    func begin(_ signIn: LegacySignIn) {
        change(to: Owner(account: signIn.session.account, userID: signIn.session.userID))
        let message = signIn.response.message
        let fields = message.fields.map { field in
            HeaderField(
                message.text(field.name), bytes: Array(message.head[field.value.range]))
        }
        jar.take(fields, target: loginTarget, unlessRemovedSince: jar.store.removals)
    }

    /// The session has changed.
    func take(_ status: LegacySessionStatus) {
        switch status {
        case .active(let account, let userID): change(to: Owner(account: account, userID: userID))
        case .signedOut: change(to: nil)
        case .locked, .presenceNeeded, .unavailable, .updateRequired: break
        }
    }

    /// The user has signed out.
    func removeAll() {
        owner.with { $0 = nil }
        jar.store.removeAll()
    }

    /// The value of `Cookie` for a request to `path`; nil if there is none.
    func field(for path: String) -> String? {
        jar.field(for: Draft(method: "POST", target: Array(path.utf8), authority: "", transport: .tls))
    }

    private func change(to next: Owner?) {
        let former = owner.with { owner in
            defer { owner = next }
            return owner
        }
        if let former, former != next { jar.store.removeAll() }
    }
}
