import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session that has ended on this device, and whose end the server has yet to be told.
///
/// It has no root and no login token, so it renews nothing. But until the server is told, its request key or
/// token signs any request for as long as the server accepts it, at most for the token's lifetime.
package struct PendingLogOut: Sendable {
    /// How many are kept; the oldest gives way.
    static let most = 8
    /// Seconds for which one is kept after the session's end by itself. A thief may have renewed the session;
    /// and for this long the server says of a session that it has ended.
    private static let keptSeconds: Int64 = 30 * 86_400

    enum Credential: Sendable {
        case device(Device)
        case bearer(token: Secret)
    }

    /// What a log-out is signed with, and what a refresh needs that asks whether another party holds the
    /// device's keys.
    struct Device: Sendable {
        /// The latest epoch, and the key that signs its requests.
        let latest: Epoch
        /// The epoch before, if the latest one is not known to be in use at the server.
        let former: Epoch?
        /// As in ``DeviceSession``.
        var attempt: [UInt8]?
        var counter: Int64
        var hasFoundReuse: Bool

        /// The epoch that a refresh would leave.
        var left: Epoch { former ?? latest }
    }

    struct Epoch: Sendable {
        let number: UInt32
        let requestKey: Secret
    }

    package let session: SessionID
    var credential: Credential
    /// When the session ends by itself, as far as this device knows: whole Unix seconds.
    let until: Int64
    /// From then on it is dropped, whether or not the server was told.
    var dropsAt: Int64 { until > .max - PendingLogOut.keptSeconds ? .max : until + PendingLogOut.keptSeconds }

    init(_ login: ActiveLogin) {
        session = login.id
        until = login.idle
        switch login.session {
        case .device(let session):
            credential = .device(
                Device(
                    latest: Epoch(session.latest),
                    former: session.successor == nil ? nil : Epoch(session.current),
                    attempt: session.attempt, counter: session.counter,
                    hasFoundReuse: session.hasFoundReuse))
        case .bearer(let session): credential = .bearer(token: session.token)
        }
    }
}

extension PendingLogOut.Epoch {
    fileprivate init(_ epoch: DeviceSession.Epoch) {
        self.init(number: epoch.number, requestKey: epoch.root.requestKey)
    }
}

extension PersistedState {
    mutating func add(_ pending: PendingLogOut) {
        pendingLogOuts = (pendingLogOuts + [pending]).suffix(PendingLogOut.most)
    }
}

extension PendingLogOut {
    /// Tags are permanent.
    private enum Tag {
        static let (session, until, epoch, requestKey, token): (UInt8, UInt8, UInt8, UInt8, UInt8) = (
            1, 2, 3, 4, 5
        )
        static let (formerKey, attempt, counter, reuse): (UInt8, UInt8, UInt8, UInt8) = (6, 7, 8, 9)
    }

    private init?(_ parts: StateParts) {
        guard let id = parts.bytes(Tag.session).flatMap({ SessionID($0.span) }),
            let until = parts.number(Tag.until)
        else { return nil }
        (session, self.until) = (id, until)
        if let key = parts[Tag.requestKey],
            let epoch = parts.number(Tag.epoch).flatMap(UInt32.init(exactly:)),
            let counter = parts.number(Tag.counter), counter >= 0
        {
            credential = .device(
                Device(
                    latest: Epoch(number: epoch, requestKey: key),
                    former: epoch == 0
                        ? nil : parts[Tag.formerKey].map { Epoch(number: epoch - 1, requestKey: $0) },
                    attempt: parts.bytes(Tag.attempt), counter: counter,
                    hasFoundReuse: parts.number(Tag.reuse) == 1))
        } else if let token = parts[Tag.token] {
            credential = .bearer(token: token)
        } else {
            return nil
        }
    }

    private var contents: Secret {
        var parts = StateParts()
        parts.set(Tag.session, to: session.bytes)
        parts.set(Tag.until, until)
        switch credential {
        case .device(let device):
            parts.set(Tag.epoch, Int64(device.latest.number))
            parts[Tag.requestKey] = device.latest.requestKey
            parts[Tag.formerKey] = device.former?.requestKey
            parts.set(Tag.attempt, to: device.attempt)
            parts.set(Tag.counter, device.counter)
            parts.set(Tag.reuse, device.hasFoundReuse ? 1 : nil)
        case .bearer(let token): parts[Tag.token] = token
        }
        return parts.contents
    }

    /// Each with the index as its tag; those that cannot be read are left out, because a session that is not
    /// told ends by itself.
    static func all(in contents: Secret) -> [PendingLogOut] {
        guard let list = StateParts(contents) else { return [] }
        return (0..<UInt8(most)).compactMap { list[$0].flatMap { StateParts($0) }.flatMap { Self($0) } }
    }

    static func contents(of all: [PendingLogOut]) -> Secret? {
        guard !all.isEmpty else { return nil }
        var list = StateParts()
        for (index, each) in all.suffix(most).enumerated() { list[UInt8(index)] = each.contents }
        return list.contents
    }
}
