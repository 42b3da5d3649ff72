import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Everything that a client stores in its vault, as one value: no reader sees half of a change.
package struct PersistedState: Sendable {
    /// The app's name at the authority.
    package var app: String?
    /// Made at the first login, and kept when a session ends: the authority recognizes the device by them.
    /// Their private halves are not in this value.
    package var keys: DeviceKeys?
    /// Seconds to add to the device's clock.
    package var clockOffset: Int64 = 0
    package var login: ActiveLogin?
    /// How the last session ended; nil while one lives, and before there was one.
    package var ended: SessionEndRecord?
    /// The account that signed in last, for the login page. It outlives the session. The password is never
    /// stored.
    package var lastAccount: AccountName?
    /// Sessions that ended here and that the server is yet to be told of, oldest first.
    var pendingLogOuts: [PendingLogOut] = []
    /// The public key, in DER, that the authority was last seen to have rotated to. It outlives the session:
    /// a former key that has leaked must not be accepted again.
    var authorityKeyInUse: [UInt8]?
    /// The parts that a newer build stores beside these.
    var others = StateParts()

    init() {}

    mutating func begin(_ login: ActiveLogin) {
        self.login = login
        lastAccount = login.account
        ended = nil
    }

    mutating func end(_ ending: SessionEndRecord) {
        login = nil
        ended = ending
    }
}

/// The signed-in account and its session.
package struct ActiveLogin: Sendable {
    package enum Session: Sendable {
        case device(DeviceSession)
        case bearer(BearerSession)
    }

    package var account: AccountName
    /// The class that the device presented at the login.
    package var deviceClass: Device.Class
    package var deviceName: Device.Name
    /// The app's rule for simultaneous sessions, in its own words.
    package var slots: String
    package var session: Session
    /// The parts that a newer build stores for this session.
    var others = StateParts()

    package var id: SessionID {
        switch session {
        case .device(let session): session.id
        case .bearer(let session): session.id
        }
    }

    package var expires: Int64 {
        switch session {
        case .device(let session): session.latest.expires
        case .bearer(let session): session.expires
        }
    }

    package var idle: Int64 {
        switch session {
        case .device(let session): session.idle
        case .bearer(let session): session.idle
        }
    }
}

extension ActiveLogin {
    /// The release that the session's newest key is for: the server admits it for that one alone. Nil where
    /// it is not known, and for bearer sessions, whose requests any release signs with its own key.
    var release: KeyID? {
        switch session {
        case .device(let session): session.latest.release
        case .bearer: nil
        }
    }

    /// Whether the session's key is known to be for another release: the app was updated since.
    package func isOfAnother(than release: KeyID) -> Bool { self.release.map { $0 != release } ?? false }
}

extension ActiveLogin {
    /// The credential that a request carried: shows whether another replaced it meanwhile.
    enum Token: Sendable, Hashable {
        case session(SessionToken)
        /// SHA-256 of the token.
        case bearer([UInt8])
    }

    var token: Token {
        switch session {
        case .device(let session): return .session(session.token)
        case .bearer(let session):
            let digest = session.token.withExposedBytes { SHA256.digest($0) }
            return .bearer(digest.indices.map { digest[$0] })
        }
    }

    /// Whether this login is over if the authority says so to a request under `used`. For a device session
    /// any epoch counts. A bearer token counts only for itself: the authority cannot tell an old one from an
    /// unknown one.
    func isOver(with used: Token) -> Bool {
        switch (session, used) {
        case (.device(let session), .session(let token)): session.id == token.id
        case (.bearer, .bearer): token == used
        case (.device, .bearer), (.bearer, .session): false
        }
    }
}

/// The layout of the state in a vault. Tags are permanent: a tag that is no longer used is not assigned
/// again.
///
/// The client keeps the parts of a newer build, since that may run here again: tags up to 9 and from 240 on
/// for as long as the vault exists, others for as long as the session lives.
private enum Tag {
    static let clients: [ClosedRange<UInt8>] = [0...9, 240...255]
    static let sessions: ClosedRange<UInt8> = 10...239
    static let known: Set<UInt8> = [
        deviceKeys, lastAccount, app, clock, endReason, endTime, endedBy, account, deviceClass, deviceName,
        slots, session, idle, epoch, root, expires, attempt, nextRoot, nextExpires, asked, counter, reuse,
        release, nextRelease, token, loginToken, tokenExpires, pendingLogOuts, authorityKeyInUse,
    ]

    static let pendingLogOuts: UInt8 = 241
    static let authorityKeyInUse: UInt8 = 242

    static let lastAccount: UInt8 = 9
    static let deviceKeys: UInt8 = 0
    static let (app, clock): (UInt8, UInt8) = (1, 2)
    static let (endReason, endTime, endedBy): (UInt8, UInt8, UInt8) = (5, 6, 7)
    static let (account, deviceClass, deviceName, slots, session): (UInt8, UInt8, UInt8, UInt8, UInt8) = (
        10, 11, 12, 13, 14
    )
    static let (idle, epoch, root, expires): (UInt8, UInt8, UInt8, UInt8) = (15, 20, 21, 22)
    static let (attempt, nextRoot, nextExpires, asked): (UInt8, UInt8, UInt8, UInt8) = (23, 24, 25, 26)
    static let (counter, reuse): (UInt8, UInt8) = (27, 28)
    /// The key ids of the releases that `root` and `nextRoot` are for. Absent in a session that a test of an
    /// app made up.
    static let (release, nextRelease): (UInt8, UInt8) = (29, 33)
    static let (token, loginToken, tokenExpires): (UInt8, UInt8, UInt8) = (30, 31, 32)
}

extension PersistedState {
    /// Nil if ``contents`` did not write it: then it is unreadable, not empty.
    init?(_ contents: Secret) {
        guard let parts = StateParts(contents) else { return nil }
        self.init()
        for range in Tag.clients { others.add(parts.unknown(Tag.known, in: range)) }
        app = parts.text(Tag.app)
        clockOffset = parts.number(Tag.clock) ?? 0
        keys = parts[Tag.deviceKeys].flatMap { DeviceKeys($0) }
        ended = parts.text(Tag.endReason).map {
            SessionEndRecord(reason: $0, at: parts.number(Tag.endTime), by: parts.text(Tag.endedBy))
        }
        lastAccount = parts.bytes(Tag.lastAccount).flatMap { try? AccountName(checking: $0.span) }
        pendingLogOuts = parts[Tag.pendingLogOuts].map { PendingLogOut.all(in: $0) } ?? []
        authorityKeyInUse = parts.bytes(Tag.authorityKeyInUse)
        guard let id = parts.bytes(Tag.session) else { return }
        guard let login = ActiveLogin(parts, id: SessionID(id.span)) else { return nil }
        self.login = login
    }

    var contents: Secret {
        var parts = others
        parts.set(Tag.app, to: app)
        parts.set(Tag.clock, clockOffset)
        parts.set(Tag.lastAccount, to: lastAccount?.bytes)
        parts[Tag.deviceKeys] = keys?.contents
        parts.set(Tag.endReason, to: ended?.reason)
        parts.set(Tag.endTime, ended?.at)
        parts.set(Tag.endedBy, to: ended?.by)
        parts[Tag.pendingLogOuts] = PendingLogOut.contents(of: pendingLogOuts)
        parts.set(Tag.authorityKeyInUse, to: authorityKeyInUse)
        login?.write(to: &parts)
        return parts.contents
    }
}

extension ActiveLogin {
    fileprivate init?(_ parts: StateParts, id: SessionID?) {
        guard let id, let account = parts.bytes(Tag.account),
            let name = try? AccountName(checking: account.span),
            let kind = parts.text(Tag.deviceClass).flatMap(Device.Class.init),
            let deviceName = parts.text(Tag.deviceName).flatMap(Device.Name.init),
            let idle = parts.number(Tag.idle),
            let session = Session(device: parts, id: id, idle: idle)
                ?? Session(bearer: parts, id: id, idle: idle)
        else { return nil }
        self.init(
            account: name, deviceClass: kind, deviceName: deviceName, slots: parts.text(Tag.slots) ?? "",
            session: session, others: parts.unknown(Tag.known, in: Tag.sessions))
    }

    fileprivate func write(to parts: inout StateParts) {
        parts.add(others)
        parts.set(Tag.session, to: id.bytes)
        parts.set(Tag.account, to: account.bytes)
        parts.set(Tag.deviceClass, to: deviceClass.rawValue)
        parts.set(Tag.deviceName, to: deviceName.description)
        parts.set(Tag.slots, to: slots)
        parts.set(Tag.idle, idle)
        switch session {
        case .device(let session):
            parts.set(Tag.epoch, Int64(session.current.number))
            parts[Tag.root] = session.current.root.secret
            parts.set(Tag.expires, session.current.expires)
            parts.set(Tag.attempt, to: session.attempt)
            parts.set(Tag.asked, session.asked)
            parts.set(Tag.counter, session.counter)
            parts.set(Tag.release, to: session.current.release?.description)
            parts.set(Tag.nextRelease, to: session.successor?.release?.description)
            parts.set(Tag.reuse, session.hasFoundReuse ? 1 : nil)
            parts[Tag.nextRoot] = session.successor?.root.secret
            parts.set(Tag.nextExpires, session.successor?.expires)
        case .bearer(let session):
            parts[Tag.token] = session.token
            parts[Tag.loginToken] = session.loginToken
            parts.set(Tag.tokenExpires, session.expires)
        }
    }
}

extension ActiveLogin.Session {
    fileprivate init?(device parts: StateParts, id: SessionID, idle: Int64) {
        guard let root = parts[Tag.root], root.count == SessionRoot.count,
            let number = parts.number(Tag.epoch).flatMap(UInt32.init(exactly:)), number < .max,
            let expires = parts.number(Tag.expires), let counter = parts.number(Tag.counter), counter >= 0
        else { return nil }
        var successor: DeviceSession.Epoch?
        if let root = parts[Tag.nextRoot], root.count == SessionRoot.count,
            let expires = parts.number(Tag.nextExpires)
        {
            successor = DeviceSession.Epoch(
                number: number + 1, root: SessionRoot(secret: root),
                release: parts.text(Tag.nextRelease).flatMap { KeyID($0) }, expires: expires)
        }
        self = .device(
            DeviceSession(
                id: id,
                current: .init(
                    number: number, root: SessionRoot(secret: root),
                    release: parts.text(Tag.release).flatMap { KeyID($0) }, expires: expires),
                idle: idle,
                successor: successor, attempt: parts.bytes(Tag.attempt), asked: parts.number(Tag.asked),
                counter: counter,
                hasFoundReuse: parts.number(Tag.reuse) == 1))
    }

    fileprivate init?(bearer parts: StateParts, id: SessionID, idle: Int64) {
        guard let token = parts[Tag.token], let loginToken = parts[Tag.loginToken],
            let expires = parts.number(Tag.tokenExpires)
        else { return nil }
        self = .bearer(
            BearerSession(id: id, token: token, loginToken: loginToken, expires: expires, idle: idle))
    }
}
