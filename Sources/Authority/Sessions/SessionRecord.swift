import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignSchemes
import CountersignThreads
import CountersignWire

/// A session in memory: a fixed number of bytes and no heap allocation, because there may be a million.
/// What else a request needs is read from the store when the session's key is first used.
struct SessionRecord {
    private struct Flags: OptionSet {
        let rawValue: UInt8

        static let isBearer = Flags(rawValue: 1)
        static let hasPrevious = Flags(rawValue: 2)
        static let hasSuccessor = Flags(rawValue: 4)
        static let isEnded = Flags(rawValue: 8)
        static let isOpenedUnsigned = Flags(rawValue: 16)
        static let isVerified = Flags(rawValue: 32)
    }

    let id: SessionID
    let account: Int64
    /// ``StoredSession/change`` of the row that this record was made from.
    let change: Int64
    let used: Int64
    /// When its login was; whole Unix seconds.
    let created: Int64
    /// When the epoch began; for a bearer session, when its token expires. Whole Unix seconds.
    let moment: Int64
    private let endedAt: Int64
    /// For a bearer session, the issue time of its tokens, truncated: each issue time is another edition.
    let epoch: UInt32
    /// The app, the platform and the release of `epoch`, as a number in ``AppPlatformTable``.
    let appPlatform: UInt32
    private let flags: Flags
    private let reason: UInt8
    private let by: UInt8

    /// `isVerified`: whether the row was read by ``SessionStore/session(_:)``, or is one that this server
    /// wrote.
    init(_ row: SessionOutline, appPlatform: UInt32, isVerified: Bool = false) {
        id = row.id
        account = row.account
        change = row.change
        used = row.used
        created = row.created
        self.appPlatform = appPlatform
        var flags: Flags = row.end == nil ? [] : .isEnded
        if row.opening == .unsigned { flags.insert(.isOpenedUnsigned) }
        if isVerified { flags.insert(.isVerified) }
        switch row.credentials {
        case .device(let device):
            epoch = device.epoch
            moment = device.epochBegan
            if device.hasPreviousRoot { flags.insert(.hasPrevious) }
            if device.hasSuccessor { flags.insert(.hasSuccessor) }
        case .bearer(let bearer):
            epoch = UInt32(truncatingIfNeeded: bearer.issued)
            moment = bearer.tokenExpires
            flags.insert(.isBearer)
            if bearer.hasPreviousToken { flags.insert(.hasPrevious) }
            // The previous login token is accepted until the new token is used.
            if bearer.hasPreviousLoginToken { flags.insert(.hasSuccessor) }
        }
        self.flags = flags
        endedAt = row.end?.at ?? 0
        reason =
            row.end.flatMap { SessionTermination.Reason.allCases.firstIndex(of: $0.reason) }.map(UInt8.init)
            ?? 0
        by =
            row.end?.by.flatMap(Device.Class.init).flatMap { Device.Class.allCases.firstIndex(of: $0) }
            .map { UInt8($0 + 1) } ?? 0
    }

    var kind: Session.Kind { flags.contains(.isBearer) ? .bearer : .device }
    var hasPrevious: Bool { flags.contains(.hasPrevious) }
    var hasSuccessor: Bool { flags.contains(.hasSuccessor) }
    var opening: Session.LoginKind { flags.contains(.isOpenedUnsigned) ? .unsigned : .signed }
    var keyPossession: Session.KeyPossession { kind == .bearer ? .none : .software }
    var isEnded: Bool { flags.contains(.isEnded) }
    var isVerified: Bool { flags.contains(.isVerified) }

    var end: SessionTermination? {
        guard isEnded else { return nil }
        let classes = Device.Class.allCases
        return SessionTermination(
            SessionTermination.Reason.allCases[Int(reason)], at: endedAt,
            by: by == 0 ? nil : classes[Int(by) - 1].rawValue)
    }

    /// Which of a bearer session's tokens has this hash; nil if neither has. A sender cannot choose the
    /// hash of its token, so the time that the comparison takes tells nothing about a valid one.
    func edition(ofTokenHash hash: Span<UInt8>, among hashes: SessionSecret?) -> Session.Edition? {
        guard kind == .bearer, hash.count == 32, let hashes else { return nil }
        if hashes.holds(hash, at: 0) { return hasSuccessor ? .offered : .current }
        return hasPrevious && hashes.holds(hash, at: 32) ? .previous : nil
    }
}

/// Apps, platforms and releases by number, so that a session's record holds four bytes for the three names.
/// It has as many entries as there are releases with a session, which are few.
///
/// Unchecked, because the state is guarded by a lock beside it: `lock` lets event loops read at the same
/// time, and is held for each access.
final class AppPlatformTable: @unchecked Sendable {
    struct AppPlatform: Hashable {
        var app: AppName
        var platform: Platform
        /// Of a device-bound session's current epoch.
        var release: KeyID?

        init(_ session: SessionOutline) {
            app = session.app
            platform = session.platform
            if case .device(let device) = session.credentials { release = device.release }
        }
    }

    private let lock = ReadWriteLock()
    private var all: [AppPlatform] = []
    private var numbers: [AppPlatform: UInt32] = [:]

    func number(of place: AppPlatform) -> UInt32 {
        if let number = lock.read({ numbers[place] }) { return number }
        return lock.write {
            if let number = numbers[place] { return number }
            all.append(place)
            let number = UInt32(all.count - 1)
            numbers[place] = number
            return number
        }
    }

    /// `number` is one that ``number(of:)`` returned.
    subscript(number: UInt32) -> AppPlatform { lock.read { all[Int(number)] } }
}
