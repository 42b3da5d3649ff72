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
}

/// Bounds stored idempotent requests, so that no caller fills the disk or uses up the room of others.
///
/// If room is needed, the store forgets finished requests before their day is over, but none that is younger
/// than ``floor``. If that frees no room, the largest holders are refused a key, and their responses are not
/// kept. The last eighth is a reserve, of keys and of bytes alike:
///
/// | part | is available to |
/// | --- | --- |
/// | the first half | each holder, up to a quarter of what is left of that half |
/// | the next quarter | holders of little: less than ``fewKeys``, and less than 1/128 of all |
/// | the last quarter | holders of nothing |
///
/// So the keys of many holders together never refuse the first key of another one, as long as there are not
/// as many holders as the last quarter has keys. Bytes never refuse a key.
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
    /// A holder may then have at most one part in this many of what is left of the reserve's first half.
    private static let share = 4
    /// A holder has little if it has less than one part in this many.
    private static let littlePart = 128
    /// The weight of a key when holders are compared, in bytes of responses.
    package static let bytesOfKey = 4_096
    /// Requests that are displaced at once to make room.
    package static let displacedAtOnce = 16

    package init() {}

    package enum Room: Sendable {
        case free
        /// Only the reserve is left. If nothing can be forgotten, this holder may take one more key from it.
        case reserved
        /// All room is used, or this holder has used its share of the reserve.
        case none
        /// The account has reached its own bound of keys.
        case ofAccountUsed
        /// The account has reached its own bound of bytes. If none of its own requests can be forgotten, the
        /// request may begin, and its response is not kept.
        case ofAccountWithoutBytes

        /// Whether requests of the account itself are to be forgotten.
        package var isOfAccount: Bool {
            switch self {
            case .ofAccountUsed, .ofAccountWithoutBytes: true
            case .free, .reserved, .none: false
            }
        }

        /// Whether the request may begin although nothing can be forgotten.
        package var admits: Bool {
            switch self {
            case .free, .reserved, .ofAccountWithoutBytes: true
            case .none, .ofAccountUsed: false
            }
        }
    }

    /// Whether `scope` may begin another request for the holder. `own` is the scope's usage, `held` the
    /// holder's, and `used` the total.
    package func room(
        for scope: IdempotencyScope, own: IdempotencyUsage, held: IdempotencyUsage, used: IdempotencyUsage
    ) -> Room {
        if scope.kind == .account, own.keys >= account.keys { return .ofAccountUsed }
        guard IdempotencyBounds.hasRoom(held: held.keys, few: fewKeys, used: used.keys, of: all.keys) else {
            return .none
        }
        if scope.kind == .account, own.bytes >= account.bytes { return .ofAccountWithoutBytes }
        let isFree =
            used.keys < IdempotencyBounds.unreserved(of: all.keys)
            && used.bytes < IdempotencyBounds.unreserved(of: all.bytes)
        return isFree ? .free : .reserved
    }

    /// Whether the response of a request may be kept. Usage is as in ``room(for:own:held:used:)``. One
    /// response may exceed the bytes.
    package func keepsResponse(
        for scope: IdempotencyScope, own: IdempotencyUsage, held: IdempotencyUsage, used: IdempotencyUsage
    ) -> Bool {
        if scope.kind == .account, own.bytes >= account.bytes { return false }
        return IdempotencyBounds.hasRoom(
            held: held.bytes, few: fewKeys * IdempotencyBounds.bytesOfKey, used: used.bytes, of: all.bytes)
    }

    /// Whether a holder of `held` may have more, where `used` of `all` are used by all holders together.
    private static func hasRoom(held: Int, few: Int, used: Int, of all: Int) -> Bool {
        if used < unreserved(of: all) { return true }
        let reserve = all / reservePart
        if held < (all - reserve / 2 - used) / share { return true }
        if held < min(few, all / littlePart), used < all - reserve / 4 { return true }
        return held == 0 && used < all
    }

    private static func unreserved(of all: Int) -> Int { all - all / reservePart }

    /// Finished requests that began before this time may be forgotten. `now` is in whole Unix seconds.
    package func displaceable(at now: Int64) -> Int64 { latest.map { min(now, $0) - Int64(floor) } ?? .min }
}
