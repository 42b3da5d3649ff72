import CountersignGate

extension SlotRule {
    /// Which of an account's live sessions a new one leaves no room for. Source: docs/protocol.md, "Slots".
    package func displaced(by new: StoredSession, among live: [StoredSession]) -> [StoredSession] {
        switch self {
        case .single: live
        case .perPlatform: live.filter { $0.platform == new.platform }
        case .perDeviceClass: live.filter { $0.deviceClass == new.deviceClass }
        case .limit(let most): SlotRule.oldest(of: live, leaving: max(most, 1) - 1)
        case .unlimited: []
        }
    }

    private static func oldest(of live: [StoredSession], leaving room: Int) -> [StoredSession] {
        // Of two logins within a second, the one that was written first is the older.
        let byAge = live.sorted { ($0.created, $0.change) < ($1.created, $1.change) }
        return Array(byAge.prefix(max(byAge.count - room, 0)))
    }
}
