import CountersignGate

extension SlotRule {
    /// Live sessions that an account has at most, whatever its rule: who signs in ten thousand times must not make each look at
    /// the account read as many.
    package static let mostLive = 1_000
    /// Ended sessions of an account that are known on, so that their holders are told why. A new session forgets the others.
    package static let mostEnded = 50

    /// Whether a new session ends none of so many that live, whichever they are.
    package func hasRoom(beside count: Int) -> Bool { count == 0 || count < (most ?? 0) }

    /// Which of an account's live sessions a new one leaves no room for. Source: docs/protocol.md, "Slots".
    package func displaced(by new: StoredSession, among live: [StoredSession]) -> [StoredSession] {
        switch self {
        case .single: live
        case .perPlatform: live.filter { $0.platform == new.platform }
        case .perDeviceClass: live.filter { $0.deviceClass == new.deviceClass }
        case .limit, .unlimited: SlotRule.oldest(of: live, leaving: (most ?? 1) - 1)
        }
    }

    /// Nil for rules that are not about numbers.
    private var most: Int? {
        switch self {
        case .single, .perPlatform, .perDeviceClass: nil
        case .limit(let most): min(max(most, 1), SlotRule.mostLive)
        case .unlimited: SlotRule.mostLive
        }
    }

    private static func oldest(of live: [StoredSession], leaving room: Int) -> [StoredSession] {
        // Of two logins within a second, the one that was written first is the older.
        let byAge = live.sorted { ($0.created, $0.change) < ($1.created, $1.change) }
        return Array(byAge.prefix(max(byAge.count - room, 0)))
    }
}
