import CountersignTransport
import CountersignWire

extension ClientCore {
    /// The value of `Cookie` for a request that has none of its own; nil where cookies are not kept, or none is for it.
    func cookieField(for draft: Draft) -> String? {
        guard options.cookies == .keptUntilSignOut else { return nil }
        let setting = setting(of: draft.target)
        return cookies.field(path: setting.path, isEncrypted: setting.isEncrypted, at: setting.time)
    }

    /// Keeps what the answer to a request for `target` sets, which was made at `removals` of the store.
    func takeCookies(_ fields: [HeaderField], _ target: [UInt8], unlessRemovedSince removals: Int) {
        guard options.cookies == .keptUntilSignOut else { return }
        cookies.take(fields, setting(of: target), unlessRemovedSince: removals)
    }

    private func setting(of target: [UInt8]) -> Cookie.Setting {
        Cookie.Setting(
            host: base.origin.host.description,
            path: String(decoding: target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self),
            isEncrypted: base.origin.security == .tls, time: options.clock.wall())
    }
}

extension CountersignClient {
    /// The cookies that the server has set; empty unless ``CountersignOptions/cookies`` keeps them.
    public var cookies: CookieStore { core.cookies }
}
