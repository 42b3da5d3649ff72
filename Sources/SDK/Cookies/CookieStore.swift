import CountersignMemory
import CountersignTransport
import CountersignTrust

/// A client's cookies, in memory: what its one server has set, and what goes back to it. Each client has a store of its own, and
/// the platform's shared store is not touched.
///
/// Off by default (``CountersignOptions/cookies``). A `Cookie` field is added before the request is signed, so the signature covers
/// it; a request that has one of its own is left as it is. When the session ends, or another account signs in, all cookies
/// are removed: they were the former account's. Whatever `Domain` says, a cookie goes to the client's own host alone.
public final class CookieStore: Sendable {
    private struct Kept {
        var cookies: [Cookie] = []
        /// How often all were removed.
        var removals = 0
    }

    private let kept = Locked(Kept())

    /// Cookies at most; beyond them the oldest goes. Source: RFC 6265 §6.1.
    private static let most = 50

    package init() {}

    /// Those that are kept now, the oldest first. One whose time is over is among them until it is next looked at.
    public var cookies: [Cookie] { kept.with { $0.cookies } }

    /// Removes all of them. Requests that are on their way set none any more.
    public func removeAll() { kept.with { $0 = Kept(removals: $0.removals + 1) } }

    /// How often all were removed: a request notes it before it is made, for
    /// ``take(_:_:unlessRemovedSince:)``.
    package var removals: Int { kept.with { $0.removals } }

    /// Takes what an answer sets. Nothing where all were removed since the request was made, at `removals`:
    /// the answer may be another account's, whose cookies must not go with this one's requests.
    package func take(
        _ fields: [HeaderField], _ setting: Cookie.Setting, unlessRemovedSince removals: Int
    ) {
        let set = fields.lazy.filter { $0.name.lowercased() == "set-cookie" }
            .compactMap { String(utf8: $0.value) }
            .compactMap { Cookie($0, setting) }
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

    /// The value of `Cookie` for a request; nil where none is for it. Of several, those of longer paths come first.
    /// Source: RFC 6265 §5.4.
    package func field(path: String, isEncrypted: Bool, at time: Int64) -> String? {
        let fitting = cookies.enumerated()
            .filter { $0.element.isFor(path: path, isEncrypted: isEncrypted, at: time) }
            .sorted { ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset) }
        guard !fitting.isEmpty else { return nil }
        return fitting.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }
}
