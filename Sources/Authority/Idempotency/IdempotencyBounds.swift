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

/// Bounds stored idempotent requests, so that no caller fills the disk or uses up the room of others.
///
/// If room is needed, the store forgets finished requests before their day is over, but none that is younger
/// than ``floor``. If that frees no room, the largest holders are refused: the last eighth is shared so that
/// something is always left for a smaller holder.
package struct IdempotencyBounds: Sendable, Equatable {
    /// For all holders together.
    package var all = IdempotencyUsage(keys: 1_500_000, bytes: 4 << 30)
    /// For one account.
    package var account = IdempotencyUsage(keys: 10_000, bytes: 64 << 20)
    /// Seconds for which a finished request is never forgotten. Clients are told this number and rely on it.
    package var floor = KeyRetention.lowest
    /// The latest time, in whole Unix seconds, that has certainly come; nil while it is not known. Then no
    /// request is forgotten to make room.
    package var latest: Int64? = .max
    /// A holder with more keys than this counts as one of the largest.
    package var fewKeys = 100

    /// The size of the reserve: one part in this many. The reserve is used only if nothing can be forgotten.
    private static let reservePart = 8
    /// A holder may then have at most one part in this many of what is left.
    private static let share = 4
    /// The weight of a key when holders are compared, in bytes of responses.
    package static let bytesOfKey = 4_096
    /// Requests that are displaced at once to make room.
    package static let displacedAtOnce = 16

    package init() {}

    package enum Room: Sendable {
        case free
        /// Only the reserve is left. If nothing can be forgotten, this holder may take one more key from it.
        case reserved
        /// All room is used, or this holder has used its share of what is left.
        case none
        /// The account has reached its own bound.
        case ofAccountUsed
    }

    /// Whether `scope` may begin another request for the holder. `own` is the scope's usage, `held` the
    /// holder's, and `used` the total.
    package func room(
        for scope: IdempotencyScope, own: IdempotencyUsage, held: IdempotencyUsage, used: IdempotencyUsage
    ) -> Room {
        if scope.kind == .account, !account.hasRoom(beside: own) { return .ofAccountUsed }
        if all.without(all.divided(by: IdempotencyBounds.reservePart)).hasRoom(beside: used) { return .free }
        let left = all.without(used).divided(by: IdempotencyBounds.share)
        return left.hasRoom(beside: held) ? .reserved : .none
    }

    /// Finished requests that began before this time may be forgotten. `now` is in whole Unix seconds.
    package func displaceable(at now: Int64) -> Int64 { latest.map { min(now, $0) - Int64(floor) } ?? .min }
}
