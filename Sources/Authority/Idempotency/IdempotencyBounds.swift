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
/// Where room is needed, finished requests are forgotten before their day is over, but none that is younger
/// than ``floor``. Where that makes no room either, the holders of much are refused: the last eighth is
/// shared so that there is always something left for a holder of less.
package struct IdempotencyBounds: Sendable, Equatable {
    /// For all holders together.
    package var all = IdempotencyUsage(keys: 1_500_000, bytes: 4 << 30)
    /// For one account.
    package var account = IdempotencyUsage(keys: 10_000, bytes: 64 << 20)
    /// Seconds for which a finished request is never forgotten; what clients are told that they can rely on.
    package var floor = KeyRetention.lowest
    /// The latest time, in whole Unix seconds, that has certainly come. Nil while that is not known: then
    /// nothing is forgotten for want of room.
    package var latest: Int64? = .max
    /// A holder of more keys counts as one of the largest.
    package var fewKeys = 100

    /// This fraction (one part in so many) is used only where nothing can be forgotten.
    private static let reservePart = 8
    /// A holder may have at most this fraction of what is left then.
    private static let share = 4
    /// The weight of a key where holders are compared, in bytes of answers.
    package static let bytesOfKey = 4_096
    /// Requests that are displaced at once to make room.
    package static let displacedAtOnce = 16

    package init() {}

    package enum Room: Sendable {
        case free
        /// Only the last part is left, of which this holder may take one more if nothing can be forgotten.
        case reserved
        /// As many are kept as may be, or this holder has its share of what is left.
        case none
        /// The account has as many as it may.
        case ofAccountUsed
    }

    /// Whether `scope` may begin another request for the holder: `own` is the scope's usage, `held` the
    /// holder's, and `used` that of all together.
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
