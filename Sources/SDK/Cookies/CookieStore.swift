import CountersignClient
import CountersignMemory
import CountersignTransport
import CountersignTrust
import CountersignWire

/// A client's cookies, in memory: those that its server has set, for later requests. Each client has a store
/// of its own; the client does not touch the platform's shared store.
///
/// Off by default (``CountersignOptions/cookies``, ``LegacyOptions/cookies``). The client adds the `Cookie`
/// field before it signs the request, so the signature covers it; a request that has its own `Cookie` field
/// stays unchanged. When the session ends, or another account signs in, the client removes all cookies:
/// they belong to the former account. Whatever `Domain` says, a cookie goes only to the client's own host.
public final class CookieStore: Sendable {
    private struct Kept {
        var cookies: [Cookie] = []
        /// How often all cookies were removed.
        var removals = 0
        /// The account that they belong to; nil while none is known to be signed in.
        var owner: SignedCalls.Owner?

        mutating func removeAll() { (cookies, removals) = ([], removals + 1) }
    }

    private let kept = Locked(Kept())

    /// The most cookies; the oldest is removed beyond that. Source: RFC 6265 §6.1.
    private static let most = 50

    package init() {}

    /// The stored cookies, the oldest first. An expired cookie is among them until the store is next read or
    /// written.
    public var cookies: [Cookie] { kept.with { $0.cookies } }

    /// Removes all cookies. Responses to requests that are in progress set none any more.
    public func removeAll() { kept.with { $0.removeAll() } }

    /// An account has signed in, or none is signed in any more (nil): the cookies of another account must not
    /// go with its requests.
    func belong(to owner: SignedCalls.Owner?) {
        kept.with { kept in
            if let former = kept.owner, former != owner { kept.removeAll() }
            kept.owner = owner
        }
    }

    /// How often all cookies were removed: a request notes it before it is sent, for
    /// ``take(_:setting:unlessRemovedSince:)``.
    package var removals: Int { kept.with { $0.removals } }

    /// Stores the cookies that a response sets. Stores none if all were removed since the request was made,
    /// at `removals`: the response may be another account's, whose cookies must not go with this account's
    /// requests.
    package func take(
        _ fields: [HeaderField], setting: Cookie.Setting, unlessRemovedSince removals: Int
    ) {
        let set = fields.lazy.filter { $0.name.lowercased() == "set-cookie" }
            .compactMap { String(utf8: $0.value) }
            .compactMap { Cookie($0, setting: setting) }
        kept.with { kept in
            guard kept.removals == removals else { return }
            for cookie in set {
                let place = kept.cookies.firstIndex { $0.name == cookie.name && $0.path == cookie.path }
                switch (place, cookie.isAlive(at: setting.time)) {
                case (let place?, true): kept.cookies[place] = cookie
                case (let place?, false): kept.cookies.remove(at: place)
                case (nil, true): kept.cookies.append(cookie)
                case (nil, false): break
                }
            }
            kept.cookies.removeAll { !$0.isAlive(at: setting.time) }
            let surplus = kept.cookies.count - CookieStore.most
            if surplus > 0 { kept.cookies.removeFirst(surplus) }
        }
    }

    /// The value of `Cookie` for a request; nil if no cookie matches. Cookies with longer paths come first.
    /// Source: RFC 6265 §5.4.
    package func field(path: String, isEncrypted: Bool, at time: Int64) -> String? {
        let fitting = cookies.enumerated()
            .filter { $0.element.isFor(path: path, isEncrypted: isEncrypted, at: time) }
            .sorted { ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset) }
        guard !fitting.isEmpty else { return nil }
        return fitting.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }
}

/// A client's cookies, as its options keep them.
struct CookieJar: Sendable {
    let store: CookieStore
    let rule: CountersignOptions.Cookies
    let base: BaseURL
    let clock: DeviceClock

    /// The value of `Cookie` for a request that has no such field; nil if cookies are off or none matches.
    func field(target: [UInt8]) -> String? {
        guard rule == .keptUntilSignOut else { return nil }
        let setting = setting(of: target)
        return store.field(path: setting.path, isEncrypted: setting.isEncrypted, at: setting.time)
    }

    /// Stores the cookies of a response to a request for `target`, which was made at `removals` of the store.
    func take(_ fields: [HeaderField], target: [UInt8], unlessRemovedSince removals: Int) {
        guard rule == .keptUntilSignOut else { return }
        store.take(fields, setting: setting(of: target), unlessRemovedSince: removals)
    }

    private func setting(of target: [UInt8]) -> Cookie.Setting {
        Cookie.Setting(
            host: base.origin.host.description,
            path: String(decoding: target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self),
            isEncrypted: base.origin.security == .tls, time: clock.wall())
    }
}
