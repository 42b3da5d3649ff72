import CountersignSchemes
import CountersignWire

/// The owner of an `Idempotency-Key`. The texts of the two kinds cannot collide.
package enum IdempotencyScope: Sendable, Hashable, CustomStringConvertible {
    /// A session's account, by its number.
    case account(Int64)
    /// Callers without a session, identified only by their release.
    case release(KeyID)

    /// The first word of the text, by which stores sum up the usage of a kind.
    package enum Kind: String, Sendable, CaseIterable { case account, release }

    package var kind: Kind {
        switch self {
        case .account: .account
        case .release: .release
        }
    }

    /// From a text of ``description``; nil for any other.
    package init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
        guard parts.count == 2, let kind = Kind(rawValue: parts[0]) else { return nil }
        switch kind {
        case .account:
            guard let number = Int64(parts[1]) else { return nil }
            self = .account(number)
        case .release:
            guard let id = KeyID(parts[1]) else { return nil }
            self = .release(id)
        }
    }

    package var description: String {
        switch self {
        case .account(let number): "\(Kind.account.rawValue) \(number)"
        case .release(let id): "\(Kind.release.rawValue) \(id)"
        }
    }
}

/// The party whose keys are counted together, so that no holder takes the room of others: an account, or
/// the network of callers without a session, whatever release they name.
package enum IdempotencyHolder: Sendable, Hashable, CustomStringConvertible {
    case account(Int64)
    /// An IPv4 address in 4 bytes, or the first 6 of an IPv6 address: one party often has a network of 48
    /// bits, which holds 65,536 networks of 64.
    case network([UInt8])

    /// The first word of a network's text; an account's text is that of its scope. Stores tell both by
    /// their first 7 letters.
    package static let network = "network"

    init(of scope: IdempotencyScope, from address: ClientAddress) {
        self =
            switch scope {
            case .account(let number): .account(number)
            case .release where address.bytes.count == 4: .network(address.bytes)
            case .release: .network(Array(address.bytes.prefix(6)))
            }
    }

    /// From the text of a network; nil for any other.
    package init?(network text: String) {
        guard text.hasPrefix("\(IdempotencyHolder.network) "),
            let bytes = Hex.decode(String(text.dropFirst(IdempotencyHolder.network.utf8.count + 1))),
            bytes.count <= 6
        else { return nil }
        self = .network(bytes)
    }

    package var description: String {
        switch self {
        case .account(let number): "\(IdempotencyScope.account(number))"
        case .network(let bytes): "\(IdempotencyHolder.network) \(Hex.encode(bytes.span))"
        }
    }
}

/// The number of keys, and the bytes of their stored answers.
package struct IdempotencyUsage: Sendable, Equatable {
    package var keys: Int
    /// Bytes of the answers as stored.
    package var bytes: Int

    package static let none = IdempotencyUsage(keys: 0, bytes: 0)

    package init(keys: Int, bytes: Int) {
        self.keys = keys
        self.bytes = bytes
    }

    package static func + (one: IdempotencyUsage, other: IdempotencyUsage) -> IdempotencyUsage {
        IdempotencyUsage(keys: one.keys + other.keys, bytes: one.bytes + other.bytes)
    }

    fileprivate func without(_ other: IdempotencyUsage) -> IdempotencyUsage {
        IdempotencyUsage(keys: max(0, keys - other.keys), bytes: max(0, bytes - other.bytes))
    }

    fileprivate func divided(by parts: Int) -> IdempotencyUsage {
        IdempotencyUsage(keys: keys / parts, bytes: bytes / parts)
    }

    /// Room for one more key. The answers of requests that are still running may exceed the bytes, by one
    /// answer each.
    fileprivate func hasRoom(beside used: IdempotencyUsage) -> Bool { used.keys < keys && used.bytes < bytes }
}

/// The bounds of stored idempotent requests, so that no caller fills the disk or takes the room of others.
///
/// A release's key is in every copy of its app, so callers without a session have a part of their own,
/// which sessions do not share. In each part a holder has at most a share of what is free, so that many
/// greedy holders leave room for the next one; a reserve is for holders of few keys.
package struct IdempotencyBounds: Sendable, Equatable {
    /// For all holders together.
    package var all = IdempotencyUsage(keys: 1_000_000, bytes: 4 << 30)
    /// For one account.
    package var account = IdempotencyUsage(keys: 10_000, bytes: 64 << 20)
    /// A holder of fewer keys may also use the reserve.
    package var fewKeys = 100

    /// All releases together may use this fraction (one part in so many) of ``all``.
    private static let releasesPart = 2
    /// One release may use this fraction.
    private static let releasePart = 10
    /// This fraction is reserved for holders of few keys.
    private static let reservePart = 8
    /// Any other holder may use at most this fraction of what is free beside the reserve.
    private static let share = 4
    /// Bytes of answers for each of few keys; also the weight of a key where holders are compared.
    package static let bytesOfKey = 4_096
    /// Seconds for which no finished request is displaced.
    private static let leastKeptSeconds: Int64 = 3_600
    /// Requests that are displaced at once to make room.
    package static let displacedAtOnce = 16

    package init() {}

    package enum Room: Sendable {
        case free
        /// This holder, or its release, has reached its bound.
        case used
        /// This holder has little, and others have filled the part that it shares.
        case contended
    }

    /// Whether `scope` may begin another request for the holder: `own` is the scope's usage, `held` the
    /// holder's, and `accounts` and `releases` the total of each kind.
    package func room(
        for scope: IdempotencyScope, own: IdempotencyUsage, held: IdempotencyUsage,
        accounts: IdempotencyUsage, releases: IdempotencyUsage
    ) -> Room {
        let used = releases + accounts
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

    private func room(in part: IdempotencyUsage, beside used: IdempotencyUsage, held: IdempotencyUsage)
        -> Room
    {
        if few.hasRoom(beside: held) { return part.hasRoom(beside: used) ? .free : .contended }
        let free = part.without(part.divided(by: IdempotencyBounds.reservePart)).without(used)
        return free.divided(by: IdempotencyBounds.share).hasRoom(beside: held) ? .free : .used
    }

    private var few: IdempotencyUsage {
        IdempotencyUsage(keys: fewKeys, bytes: fewKeys * IdempotencyBounds.bytesOfKey)
    }

    /// A holder of few keys may displace finished requests that began before this time, of the holder with
    /// the most. `now` is in whole Unix seconds.
    package func displaceable(at now: Int64) -> Int64 { now - IdempotencyBounds.leastKeptSeconds }
}
