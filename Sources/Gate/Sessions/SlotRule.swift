/// How many sessions of one account live side by side. Source: docs/protocol.md, "Slots".
package enum SlotRule: Sendable, Equatable {
    case single
    case perPlatform
    case perDeviceClass
    /// 1 or more; the oldest is ended for the newest.
    case limit(Int)
    case unlimited
}

extension SlotRule: CustomStringConvertible {
    /// As policies and answers spell it.
    package var description: String {
        switch self {
        case .single: "single"
        case .perPlatform: "per-platform"
        case .perDeviceClass: "per-device-class"
        case .limit(let most): "limit(\(most))"
        case .unlimited: "unlimited"
        }
    }
}
