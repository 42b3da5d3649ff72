import CountersignSchemes
import CountersignWire

/// Whose an `Idempotency-Key` is. The two are spelled so that they cannot meet.
package enum IdempotencyScope: Sendable, Hashable, CustomStringConvertible {
    /// A session's account, by its number.
    case account(Int64)
    /// Callers without a session, of whom nothing better is known.
    case release(KeyID)

    /// The first word of the text, by which stores add up what all of a kind have.
    package enum Kind: String, Sendable, CaseIterable { case account, release }

    package var kind: Kind {
        switch self {
        case .account: .account
        case .release: .release
        }
    }

    package var description: String {
        switch self {
        case .account(let number): "\(Kind.account.rawValue) \(number)"
        case .release(let id): "\(Kind.release.rawValue) \(id)"
        }
    }
}

/// Whose keys are counted together, so that no holder takes the room of others: an account, or the network
/// that callers without a session call from, whatever release they name.
package enum IdempotencyHolder: Sendable, Hashable, CustomStringConvertible {
    case account(Int64)
    /// An IPv4 address in 4 bytes, or the first 6 of an IPv6 address: one party often has a network of 48
    /// bits, which holds 65,536 networks of 64.
    case network([UInt8])

    /// The first word of the text of a network; that of an account is its scope's. Stores tell both by their
    /// 7 letters.
    package static let network = "network"

    init(of scope: IdempotencyScope, from address: ClientAddress) {
        self =
            switch scope {
            case .account(let number): .account(number)
            case .release: .network(Array(address.bytes.prefix(address.bytes.count == 4 ? 4 : 6)))
            }
    }

    package var description: String {
        switch self {
        case .account(let number): "\(IdempotencyScope.account(number))"
        case .network(let bytes): "\(IdempotencyHolder.network) \(Hex.encode(bytes.span))"
        }
    }
}

/// What is remembered of keyed requests at one time.
package struct KeptAmount: Sendable, Equatable {
    package var keys: Int
    /// Of the answers, as they are stored.
    package var bytes: Int

    package static let none = KeptAmount(keys: 0, bytes: 0)

    package init(keys: Int, bytes: Int) {
        self.keys = keys
        self.bytes = bytes
    }

    package static func + (one: KeptAmount, other: KeptAmount) -> KeptAmount {
        KeptAmount(keys: one.keys + other.keys, bytes: one.bytes + other.bytes)
    }

    fileprivate func without(_ other: KeptAmount) -> KeptAmount {
        KeptAmount(keys: max(0, keys - other.keys), bytes: max(0, bytes - other.bytes))
    }

    fileprivate func divided(by parts: Int) -> KeptAmount { KeptAmount(keys: keys / parts, bytes: bytes / parts) }

    /// Room for one key more. The answers of requests that still run come on top of the bytes: one each.
    fileprivate func hasRoom(beside used: KeptAmount) -> Bool { used.keys < keys && used.bytes < bytes }
}

/// How much may be remembered, so that no caller fills the disk or takes the room of others.
///
/// A release's key is in every copy of its app, so callers without a session have a part of their own, which
/// sessions do not share. In each part a holder has at most a share of what is free, so that many who take as
/// much as they can leave room for the next one; and a reserve is for holders of few keys.
package struct IdempotencyBounds: Sendable, Equatable {
    /// By everybody.
    package var all = KeptAmount(keys: 1_000_000, bytes: 4 << 30)
    /// By one account.
    package var account = KeptAmount(keys: 10_000, bytes: 64 << 20)
    /// A holder of fewer keys finds room in the reserve, too.
    package var fewKeys = 100

    /// All releases together have one part in so many of ``all``.
    private static let releasesPart = 2
    /// One release has one part in so many.
    private static let releasePart = 10
    /// One part in so many is for holders of few keys.
    private static let reservePart = 8
    /// Any other holder has at most one part in so many of what is free beside the reserve.
    private static let share = 4
    /// Bytes of answers for each of few keys; also what a key counts for where holders are compared.
    package static let bytesOfKey = 4_096
    /// Seconds for which no finished request is displaced.
    private static let leastKeptSeconds: Int64 = 3_600
    /// Forgotten at once where room is made.
    package static let displacedAtOnce = 16

    package init() {}

    package enum Room: Sendable {
        case free
        /// This holder, or its release, has as much as it may.
        case used
        /// This holder has little, and others have filled the part that it shares.
        case crowded
    }

    /// Whether `scope`, which has `own`, may begin another for a holder who has `held`: `kinds` says what all
    /// of each kind have.
    package func room(
        for scope: IdempotencyScope, own: KeptAmount, held: KeptAmount,
        kinds: [IdempotencyScope.Kind: KeptAmount]
    ) -> Room {
        let releases = kinds[.release] ?? .none
        let used = releases + (kinds[.account] ?? .none)
        switch scope.kind {
        case .account:
            guard account.hasRoom(beside: own) else { return .used }
            return room(in: all, beside: used, held: held)
        case .release:
            let part = room(in: all.divided(by: IdempotencyBounds.releasePart), beside: own, held: held)
            guard case .free = part else { return .used }
            let half = room(in: all.divided(by: IdempotencyBounds.releasesPart), beside: releases, held: held)
            guard case .free = half else { return half }
            return room(in: all, beside: used, held: held)
        }
    }

    private func room(in part: KeptAmount, beside used: KeptAmount, held: KeptAmount) -> Room {
        if few.hasRoom(beside: held) { return part.hasRoom(beside: used) ? .free : .crowded }
        let free = part.without(part.divided(by: IdempotencyBounds.reservePart)).without(used)
        return free.divided(by: IdempotencyBounds.share).hasRoom(beside: held) ? .free : .used
    }

    private var few: KeptAmount {
        KeptAmount(keys: fewKeys, bytes: fewKeys * IdempotencyBounds.bytesOfKey)
    }

    /// Requests that were begun before this time may give way to a holder of few keys, where they are
    /// finished and their holder is the one who has most. `now` is in whole Unix seconds.
    package func displaceable(at now: Int64) -> Int64 { now - IdempotencyBounds.leastKeptSeconds }
}
