import CountersignGate
import CountersignHandshake
import CountersignWire

/// A session as memory keeps it: a fixed number of bytes and nothing on the heap, because there are a million of them. What a
/// request needs beyond it is read from the store when its key is first used.
struct LiveSession {
    /// Bytes of a sealed root: layout, nonce, 32 bytes, tag.
    static let sealedCount = 73

    private struct Flags: OptionSet {
        let rawValue: UInt8

        static let isBearer = Flags(rawValue: 1)
        static let hasPrevious = Flags(rawValue: 2)
        static let hasSuccessor = Flags(rawValue: 4)
        static let isEnded = Flags(rawValue: 8)
        static let isOpenedUnsigned = Flags(rawValue: 16)
    }

    let id: SessionID
    let account: Int64
    /// ``StoredSession/change`` of the row that this is.
    let change: Int64
    let used: Int64
    /// When the epoch began; of a bearer, when its token runs out. Whole Unix seconds.
    let moment: Int64
    private let endedAt: Int64
    /// Of a bearer, when its tokens were issued, as far as it fits: another time is another edition of them.
    let epoch: UInt32
    /// App and platform, by their number in ``Places``.
    let place: UInt32
    /// The sealed root of `epoch`; of a bearer, the hashes of its token and of the one before it.
    private let bytes: InlineArray<73, UInt8>
    private let count: UInt8
    private let flags: Flags
    private let reason: UInt8
    private let by: UInt8

    init(_ row: StoredSession, place: UInt32) {
        id = row.id
        account = row.account
        change = row.change
        used = row.used
        self.place = place
        var flags: Flags = row.end == nil ? [] : .isEnded
        if row.opening == .unsigned { flags.insert(.isOpenedUnsigned) }
        let kept: [UInt8]
        switch row.credentials {
        case .device(let device):
            epoch = device.epoch
            moment = device.epochBegan
            kept = device.sealedRoot
            if device.sealedPreviousRoot != nil { flags.insert(.hasPrevious) }
            if device.successor != nil { flags.insert(.hasSuccessor) }
        case .bearer(let bearer):
            epoch = bearer.edition
            moment = bearer.tokenExpires
            kept = bearer.tokenHash + (bearer.previousTokenHash ?? [])
            flags.insert(.isBearer)
            if bearer.previousTokenHash != nil { flags.insert(.hasPrevious) }
            // Until the new token is used, the login token before is let in once more.
            if bearer.previousLoginTokenHash != nil { flags.insert(.hasSuccessor) }
        }
        var bytes = InlineArray<73, UInt8>(repeating: 0)
        // More than fits was not written by us, and opens as little as the part that is kept.
        let count = min(kept.count, LiveSession.sealedCount)
        for index in 0..<count { bytes[index] = kept[index] }
        self.bytes = bytes
        self.count = UInt8(count)
        self.flags = flags
        endedAt = row.end?.at ?? 0
        reason = row.end.flatMap { SessionEnd.Reason.allCases.firstIndex(of: $0.reason) }.map(UInt8.init) ?? 0
        by =
            row.end?.by.flatMap(Device.Class.init).flatMap { Device.Class.allCases.firstIndex(of: $0) }
            .map { UInt8($0 + 1) } ?? 0
    }

    var kind: Session.Kind { flags.contains(.isBearer) ? .bearer : .device }
    var hasPrevious: Bool { flags.contains(.hasPrevious) }
    var hasSuccessor: Bool { flags.contains(.hasSuccessor) }
    var opening: Session.Opening { flags.contains(.isOpenedUnsigned) ? .unsigned : .signed }
    var isEnded: Bool { flags.contains(.isEnded) }

    var end: SessionEnd? {
        guard isEnded else { return nil }
        let classes = Device.Class.allCases
        return SessionEnd(
            SessionEnd.Reason.allCases[Int(reason)], at: endedAt, by: by == 0 ? nil : classes[Int(by) - 1].rawValue)
    }

    /// The root of `epoch`, sealed. Of device-bound sessions only.
    var sealedRoot: [UInt8] { (0..<Int(count)).map { bytes[$0] } }

    /// Which of a bearer's tokens has this hash; nil where neither has. Whoever sends a token does not choose its hash, so the
    /// time this takes tells nothing about one that exists.
    func edition(ofTokenHash hash: Span<UInt8>) -> Session.Edition? {
        guard kind == .bearer, hash.count == 32 else { return nil }
        if bytes.span.extracting(0..<32).matches(hash) { return hasSuccessor ? .offered : .current }
        return hasPrevious && bytes.span.extracting(32..<64).matches(hash) ? .previous : nil
    }
}
