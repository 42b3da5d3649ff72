import CountersignGate

/// How the values are read that accounts and sessions go by.
extension PolicyKey {
    @Sendable static func applySlots(_ policy: inout Policy, from text: String) -> String? {
        switch text {
        case "single": policy.slots = .single
        case "per-platform": policy.slots = .perPlatform
        case "per-device-class": policy.slots = .perDeviceClass
        case "unlimited": policy.slots = .unlimited
        default:
            guard text.hasPrefix("limit("), text.hasSuffix(")"),
                let limit = number(text.dropFirst(6).dropLast()), (1...1000).contains(limit)
            else { return nil }
            policy.slots = .limit(limit)
            return "limit(\(limit))"
        }
        return text
    }

    @Sendable static func applyRegistration(_ policy: inout Policy, from text: String) -> String? {
        switch text {
        case "open": policy.registration = .open
        case "admin": policy.registration = .admin
        default: return nil
        }
        return text
    }

    @Sendable static func applyLegacySession(_ policy: inout Policy, from text: String) -> String? {
        switch text {
        case "upstream": policy.legacySession = .upstream
        case "authority": policy.legacySession = .authority
        default: return nil
        }
        return text
    }

    @Sendable static func applyHost(_ policy: inout Policy, from text: String) -> String? {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = sides.first, AppName(String(host)) != nil else { return nil }
        if sides.count == 2 {
            // In its one form, since it is compared by its bytes.
            guard let port = number(sides[1]), (1...65_535).contains(port), String(port) == sides[1] else { return nil }
        }
        policy.legacyHost = text
        return text
    }

    /// Where a version or a platform may be read.
    static let statedKinds: Set<RequestPlace.Kind> = [.form, .query, .cookie, .header, .userAgent]

    /// Places in a request, of these kinds. `none` stands for no place, where that is not the default.
    static func places(
        of kinds: Set<RequestPlace.Kind>, orNone isNoneAllowed: Bool = false,
        _ set: @escaping @Sendable (inout Policy, [RequestPlace]) -> Void
    ) -> @Sendable (inout Policy, String) -> String? {
        { policy, text in
            if isNoneAllowed, text == "none" {
                set(&policy, [])
                return text
            }
            guard text.utf8.count <= 1_024, let places = RequestPlace.list(text, of: kinds) else {
                return nil
            }
            set(&policy, places)
            return text
        }
    }

    @Sendable static func applyTokenLifetime(_ policy: inout Policy, from text: String) -> String? {
        guard let seconds = seconds(text[...]) else { return nil }
        policy.tokenLifetime = Int64(seconds)
        return text
    }

    /// Days, from one to a thousand; or a shorter time, for tests.
    @Sendable static func applySessionIdle(_ policy: inout Policy, from text: String) -> String? {
        if text.hasSuffix("d"), let days = number(text.dropLast()), (1...1000).contains(days) {
            policy.sessionIdle = Int64(days) * 86_400
            return "\(days)d"
        }
        guard let seconds = seconds(text[...]) else { return nil }
        policy.sessionIdle = Int64(seconds)
        return text
    }

    @Sendable static func applyUploadTickets(_ policy: inout Policy, from text: String) -> String? {
        guard let count = number(text[...]), (0...1000).contains(count) else { return nil }
        policy.uploadTickets = count
        return String(count)
    }

    @Sendable static func applyUploadTicketLifetime(_ policy: inout Policy, from text: String) -> String? {
        guard let seconds = seconds(text[...]) else { return nil }
        policy.uploadTicketLifetime = Int64(seconds)
        return text
    }

    /// For `anonymous` and `device-signed`, which stand for rules of routes: ``RouteRules/setting(_:)``.
    @Sendable static func applyPaths(_ policy: inout Policy, from text: String) -> String? {
        RoutePaths(text).map { _ in text }
    }

    /// `enforce`, or `observe` and when it ends: `observe=1767225600`. Which end one that says none has, and
    /// how far off it may be, is ``PolicyKey/change(_:at:)``'s.
    @Sendable static func applyEnforcement(_ policy: inout Policy, from text: String) -> String? {
        guard let enforcement = Enforcement(text) else { return nil }
        policy.enforcement = enforcement
        return enforcement.text
    }
}
