import CountersignSchemes

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

    fileprivate func divided(by parts: Int) -> KeptAmount { KeptAmount(keys: keys / parts, bytes: bytes / parts) }

    /// Room for one key more. The answers of requests that still run come on top of the bytes: one each.
    fileprivate func hasRoom(beside used: KeptAmount) -> Bool { used.keys < keys && used.bytes < bytes }
}

/// How much may be remembered, so that nobody who may use keys fills the disk. A release's key is in every copy of its app, so
/// anybody can use up what callers without a session have: they have a part of their own, which sessions do not share.
package struct IdempotencyBounds: Sendable, Equatable {
    /// By everybody.
    package var all = KeptAmount(keys: 1_000_000, bytes: 4 << 30)
    /// By one account.
    package var account = KeptAmount(keys: 10_000, bytes: 64 << 20)

    /// All releases together have one part in so many of ``all``.
    private static let releasesPart = 2
    /// One release has one part in so many.
    private static let releasePart = 10

    package init() {}

    /// Whether `scope`, which has `own`, may begin another: `kinds` says what all of each kind have.
    package func hasRoom(for scope: IdempotencyScope, own: KeptAmount, _ kinds: [IdempotencyScope.Kind: KeptAmount])
        -> Bool
    {
        let releases = kinds[.release] ?? .none
        guard all.hasRoom(beside: releases + (kinds[.account] ?? .none)) else { return false }
        return switch scope.kind {
        case .account: account.hasRoom(beside: own)
        case .release:
            all.divided(by: IdempotencyBounds.releasePart).hasRoom(beside: own)
                && all.divided(by: IdempotencyBounds.releasesPart).hasRoom(beside: releases)
        }
    }
}
