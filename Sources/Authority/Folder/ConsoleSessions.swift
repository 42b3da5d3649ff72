import CountersignSeal
import CountersignWire

/// Sign-in to the console. Operators are no accounts of an app: a user that can run a command on the folder
/// has a link made, and the link's code is exchanged for a session, once. Links and sessions are tokens of
/// their own kinds, so that `token list` shows the sessions and `token revoke` ends them.
extension APIToken {
    /// Seconds in which a link must be used.
    package static let linkSeconds: Int64 = 60
    /// The longest time that a session of the console lasts, in seconds.
    package static let longestConsoleSession: Int64 = 24 * 3_600
    /// Seconds after which a session of the console ends that is not used.
    package static let longestPause: Int64 = 30 * 60
    /// The most sessions of the console, and the most links that wait, at one time.
    static let mostOfConsole = 64
}

extension APIToken {
    /// Whether a session of the console has not been used for so long that it ends. `now` is in whole Unix
    /// seconds.
    package func isIdle(at now: Int64) -> Bool { now - max(used ?? 0, created) > APIToken.longestPause }

    /// Whether its use is to be recorded: once a minute is enough.
    package func isUseNews(at now: Int64) -> Bool { now - max(used ?? 0, created) >= 60 }
}

extension Deployment {
    /// Makes a link's code, which is shown once. `seconds` is how long the session will last.
    package func addConsoleLink(
        for name: String, scopes: Set<APIScope>, lasting seconds: Int64, at now: Int64
    ) throws(OperationalError) -> String {
        guard APIToken.isName(name) else {
            throw OperationalError(
                .usage,
                message: "--name `\(name)`: expected 1 to 64 letters, digits, `-`, `_`, `.` and `@`")
        }
        try requireClock(for: "link to the console")
        let (link, text) = APIToken.make(
            name, kind: .link, scopes: scopes, created: now, expires: now + APIToken.linkSeconds,
            sessionSeconds: min(max(seconds, 1), APIToken.longestConsoleSession))
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            APIToken.makeRoom(for: .link, among: &tokens, at: now)
            guard tokens.count(where: { $0.kind == .link }) < APIToken.mostOfConsole else {
                throw OperationalError(
                    .failed, message: "\(APIToken.mostOfConsole) links to the console wait already")
            }
            try APITokenFile.checkRoom(for: name, among: tokens)
            tokens.append(link)
        }
        return text
    }

    /// Exchanges a link's code for a session. Nil if there is no such link, it has expired, or it was used.
    package func redeemConsoleLink(
        _ code: Span<UInt8>, at now: Int64
    ) throws(OperationalError) -> (session: APIToken, text: String)? {
        let digest = SHA256.digest(code)
        let presented = (0..<32).map { digest[$0] }
        var made: (token: APIToken, text: String)?
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            APIToken.makeRoom(for: .console, among: &tokens, at: now)
            guard let link = APIToken.find(digest: presented, of: .link, among: tokens, at: now),
                let seconds = link.sessionSeconds
            else { return }
            guard tokens.count(where: { $0.kind == .console }) < APIToken.mostOfConsole else {
                throw OperationalError(
                    .failed,
                    message:
                        "there are \(APIToken.mostOfConsole) sessions of the console; "
                        + "`countersign token revoke ID` ends one")
            }
            let session = APIToken.make(
                link.name, kind: .console, scopes: link.scopes, created: now, expires: now + seconds)
            try record(.consoleSignIn, token: session.token, by: session.token.actor, at: now)
            tokens.removeAll { $0.id == link.id }
            tokens.append(session.token)
            made = session
        }
        return made.map { ($0.token, $0.text) }
    }

    /// Records that a session of the console is used.
    package func useConsoleSession(_ id: String, at now: Int64) throws(OperationalError) {
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            for index in tokens.indices where tokens[index].id == id { tokens[index].used = now }
        }
    }

    /// Ends a session of the console, if there is one of that id.
    package func endConsoleSession(_ id: String, at now: Int64) throws(OperationalError) {
        var ended: APIToken?
        try APITokenFile(folder).change { (tokens) throws(OperationalError) in
            ended = tokens.first { $0.id == id && $0.kind == .console }
            tokens.removeAll { $0.id == id && $0.kind == .console }
        }
        guard let ended else { return }
        try record(.consoleSignOut, token: ended, by: ended.actor, at: now)
    }
}

extension APIToken {
    /// Removes expired links and sessions of the console if there is no room for another one of that kind.
    /// While there is room, they stay, because they may not have expired by another clock.
    fileprivate static func makeRoom(for kind: Kind, among tokens: inout [APIToken], at now: Int64) {
        guard tokens.count(where: { $0.kind == kind }) >= mostOfConsole else { return }
        tokens.removeAll { $0.kind == kind && $0.hasExpired(at: now) }
    }
}
