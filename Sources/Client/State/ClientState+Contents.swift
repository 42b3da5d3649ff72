import CountersignHandshake
import CountersignSeal
import CountersignVault
import CountersignWire

/// How the state lies in a vault. A tag is for ever: one that is dropped is not used again.
///
/// What a newer build has put there is kept as it is, since it may run here again: tags up to 9 and from 240 on for as long as the
/// vault is, others for as long as the session is. Builds that know nothing of 240 and above keep those as long as the session.
private enum Tag {
    static let clients: [ClosedRange<UInt8>] = [0...9, 240...255]
    static let sessions: ClosedRange<UInt8> = 10...239
    static let known: Set<UInt8> = [
        deviceKeys, lastAccount, app, clock, signingKey, agreementKey, endReason, endTime, endedBy, signingPoint,
        account,
        deviceClass,
        deviceName, slots,
        session, idle, epoch, root,
        expires,
        attempt, nextRoot, nextExpires, asked, token, loginToken, tokenExpires,
    ]

    static let lastAccount: UInt8 = 9
    static let deviceKeys: UInt8 = 0
    static let (app, clock): (UInt8, UInt8) = (1, 2)
    /// Of earlier versions, which kept the device's keys here: read, and not written.
    static let (signingKey, agreementKey): (UInt8, UInt8) = (3, 4)
    static let (endReason, endTime, endedBy): (UInt8, UInt8, UInt8) = (5, 6, 7)
    /// Of earlier versions, too.
    static let signingPoint: UInt8 = 8
    static let (account, deviceClass, deviceName, slots, session): (UInt8, UInt8, UInt8, UInt8, UInt8) = (
        10, 11, 12, 13, 14
    )
    static let (idle, epoch, root, expires): (UInt8, UInt8, UInt8, UInt8) = (15, 20, 21, 22)
    static let (attempt, nextRoot, nextExpires, asked): (UInt8, UInt8, UInt8, UInt8) = (23, 24, 25, 26)
    static let (token, loginToken, tokenExpires): (UInt8, UInt8, UInt8) = (30, 31, 32)
}

extension ClientState {
    /// Nil where it is not what ``contents`` wrote: then it is unreadable, and by no means empty.
    init?(_ contents: Secret) {
        guard let parts = StateParts(contents) else { return nil }
        self.init()
        for range in Tag.clients { others.add(parts.unknown(Tag.known, in: range)) }
        app = parts.text(Tag.app)
        clockOffset = parts.number(Tag.clock) ?? 0
        keys = parts[Tag.deviceKeys].flatMap { DeviceKeys($0) }
        // An earlier version that was put back has written these last.
        if let agreement = parts[Tag.agreementKey] {
            guard let inline = InlineDeviceKeys(parts, agreement: agreement) else { return nil }
            (keys, inlineKeys) = (inline.keys, inline.entry)
        }
        ended = parts.text(Tag.endReason).map {
            Ending(reason: $0, at: parts.number(Tag.endTime), by: parts.text(Tag.endedBy))
        }
        lastAccount = parts.bytes(Tag.lastAccount).flatMap { try? AccountName(checking: $0.span) }
        guard let id = parts.bytes(Tag.session) else { return }
        guard let login = SignedIn(parts, SessionID(id.span)) else { return nil }
        self.login = login
        // What an older build has written names nobody else.
        lastAccount = lastAccount ?? login.account
    }

    var contents: Secret {
        var parts = others
        parts.set(Tag.app, app)
        parts.set(Tag.clock, clockOffset)
        parts.set(Tag.lastAccount, lastAccount?.bytes)
        parts[Tag.deviceKeys] = keys?.contents
        parts.set(Tag.endReason, ended?.reason)
        parts.set(Tag.endTime, ended?.at)
        parts.set(Tag.endedBy, ended?.by)
        login?.write(to: &parts)
        return parts.contents
    }
}

/// The device's keys as earlier versions kept them: in software, beside the session's root.
private struct InlineDeviceKeys {
    let keys: DeviceKeys
    let entry: DeviceKeyItem.Entry

    /// `agreement` is PKCS #8, and so is the signing key, where it is not bound to presence and only its
    /// point is here.
    init?(_ parts: StateParts, agreement: Secret) {
        let software = SoftwareKeys()
        guard let agreementPoint = try? software.agreementKey(agreement).point else { return nil }
        let signing: WrappedKey?
        let signingPoint: P256Point
        switch (parts[Tag.signingKey], parts.bytes(Tag.signingPoint)) {
        case (let pkcs8?, nil):
            guard let point = try? software.signingKey(pkcs8).point else { return nil }
            (signingPoint, signing) = (point, WrappedKey(point: point, wrapped: pkcs8))
        case (nil, let bytes?):
            guard let point = P256Point(bytes) else { return nil }
            (signingPoint, signing) = (point, nil)
        default: return nil
        }
        keys = DeviceKeys(
            signingPoint: signingPoint, agreementPoint: agreementPoint, storage: .software,
            isBoundToPresence: signing == nil)
        entry = DeviceKeyItem.Entry(
            name: keys.name, storage: .software, signing: signing,
            agreement: WrappedKey(point: agreementPoint, wrapped: agreement))
    }
}

extension SignedIn {
    fileprivate init?(_ parts: StateParts, _ id: SessionID?) {
        guard let id, let account = parts.bytes(Tag.account), let name = try? AccountName(checking: account.span),
            let kind = parts.text(Tag.deviceClass).flatMap(Device.Class.init),
            let deviceName = parts.text(Tag.deviceName).flatMap(Device.Name.init),
            let idle = parts.number(Tag.idle),
            let session = Session(device: parts, id, idle) ?? Session(bearer: parts, id, idle)
        else { return nil }
        self.init(
            account: name, deviceClass: kind, deviceName: deviceName, slots: parts.text(Tag.slots) ?? "",
            session: session, others: parts.unknown(Tag.known, in: Tag.sessions))
    }

    fileprivate func write(to parts: inout StateParts) {
        parts.add(others)
        parts.set(Tag.session, id.bytes)
        parts.set(Tag.account, account.bytes)
        parts.set(Tag.deviceClass, deviceClass.rawValue)
        parts.set(Tag.deviceName, deviceName.description)
        parts.set(Tag.slots, slots)
        parts.set(Tag.idle, idle)
        switch session {
        case .device(let session):
            parts.set(Tag.epoch, Int64(session.current.number))
            parts[Tag.root] = session.current.root.secret
            parts.set(Tag.expires, session.current.expires)
            parts.set(Tag.attempt, session.attempt)
            parts.set(Tag.asked, session.asked)
            parts[Tag.nextRoot] = session.successor?.root.secret
            parts.set(Tag.nextExpires, session.successor?.expires)
        case .bearer(let session):
            parts[Tag.token] = session.token
            parts[Tag.loginToken] = session.loginToken
            parts.set(Tag.tokenExpires, session.expires)
        }
    }
}

extension SignedIn.Session {
    fileprivate init?(device parts: StateParts, _ id: SessionID, _ idle: Int64) {
        guard let root = parts[Tag.root], root.count == SessionRoot.count,
            let number = parts.number(Tag.epoch).flatMap(UInt32.init(exactly:)), number < .max,
            let expires = parts.number(Tag.expires)
        else { return nil }
        var successor: DeviceSession.Epoch?
        if let root = parts[Tag.nextRoot], root.count == SessionRoot.count, let expires = parts.number(Tag.nextExpires)
        {
            successor = DeviceSession.Epoch(number: number + 1, root: SessionRoot(secret: root), expires: expires)
        }
        self = .device(
            DeviceSession(
                id: id, current: .init(number: number, root: SessionRoot(secret: root), expires: expires), idle: idle,
                successor: successor, attempt: parts.bytes(Tag.attempt), asked: parts.number(Tag.asked)))
    }

    fileprivate init?(bearer parts: StateParts, _ id: SessionID, _ idle: Int64) {
        guard let token = parts[Tag.token], let loginToken = parts[Tag.loginToken],
            let expires = parts.number(Tag.tokenExpires)
        else { return nil }
        self = .bearer(BearerSession(id: id, token: token, loginToken: loginToken, expires: expires, idle: idle))
    }
}
