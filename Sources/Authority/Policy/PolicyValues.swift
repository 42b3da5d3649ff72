import CountersignGate
import CountersignSchemes
import CountersignWire

/// The parsers of the settings of accounts and sessions.
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
            // The port must be in canonical form, since it is compared by its bytes.
            guard let port = number(sides[1]), (1...65_535).contains(port), String(port) == sides[1] else {
                return nil
            }
        }
        policy.legacyHost = text
        return text
    }

    /// The places from which a version or a platform may be read.
    static let statedKinds: Set<ValueLocation.Kind> = [.form, .query, .cookie, .header, .userAgent]

    /// Places in a request, of these kinds. `none` stands for no place, where that is not the default.
    static func places(
        of kinds: Set<ValueLocation.Kind>, orNone isNoneAllowed: Bool = false,
        set: @escaping @Sendable (inout Policy, [ValueLocation]) -> Void
    ) -> @Sendable (inout Policy, String) -> String? {
        { policy, text in
            if isNoneAllowed, text == "none" {
                set(&policy, [])
                return text
            }
            guard text.utf8.count <= 1_024, let places = ValueLocation.list(text, of: kinds) else {
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

    /// `off`, days as ``applySessionIdle(_:from:)`` takes them, or a shorter time.
    @Sendable static func applySessionMax(_ policy: inout Policy, from text: String) -> String? {
        if text == "off" {
            policy.sessionMax = nil
            return text
        }
        if text.hasSuffix("d"), let days = number(text.dropLast()), (1...1000).contains(days) {
            policy.sessionMax = Int64(days) * 86_400
            return "\(days)d"
        }
        guard let seconds = seconds(text[...]) else { return nil }
        policy.sessionMax = Int64(seconds)
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

    @Sendable static func applyPasswordMinimum(_ policy: inout Policy, from text: String) -> String? {
        guard let count = number(text[...]), (1...64).contains(count) else { return nil }
        policy.passwordMinimum = count
        return String(count)
    }

    @Sendable static func applyBreachedPasswords(_ policy: inout Policy, from text: String) -> String? {
        guard text.hasPrefix("/"), (2...1_024).contains(text.utf8.count) else { return nil }
        policy.breachedPasswords = text
        return text
    }

    /// `enforce`, or `observe` with its end: `observe=1767225600`. ``PolicyKey/change(_:at:)`` chooses the
    /// end of a value without one, and limits it.
    @Sendable static func applyEnforcement(_ policy: inout Policy, from text: String) -> String? {
        guard let enforcement = Enforcement(text) else { return nil }
        policy.enforcement = enforcement
        return enforcement.text
    }
}

/// The parsers of the settings of legacy endpoints.
extension PolicyKey {
    /// The number of paths that an app may name, for all endpoints together.
    private static let mostPaths = 16
    private static let longestPath = 128
    private static let longestName = 64

    /// `ENDPOINT:/path,…`. An endpoint may have several paths; a path belongs to one endpoint.
    @Sendable static func applyLegacyPaths(_ policy: inout Policy, from text: String) -> String? {
        let parts = parts(text)
        guard parts.count <= mostPaths else { return nil }
        var paths: [Policy.LegacyPath] = []
        for part in parts {
            guard let (name, path) = pair(part), let endpoint = Policy.LegacyEndpoint(rawValue: name),
                isEndpointPath(path)
            else {
                return nil
            }
            paths.append(Policy.LegacyPath(endpoint, at: Array(path.utf8)))
        }
        policy.legacyPaths = paths
        guard LegacyEndpoints(policy).areDistinct else { return nil }
        return text
    }

    /// `NAME:parameter,…`: each name once, and no two parameters alike.
    @Sendable static func applyLegacyNames(_ policy: inout Policy, from text: String) -> String? {
        var names: [Policy.LegacyName: String] = [:]
        for part in parts(text) {
            guard let (left, parameter) = pair(part), let name = Policy.LegacyName(rawValue: left),
                names[name] == nil, isParameterName(parameter)
            else { return nil }
            names[name] = parameter
        }
        policy.legacyNames = names
        let effective = Policy.LegacyName.allCases.map { policy.parameter($0) }
        return Set(effective).count == effective.count ? text : nil
    }

    /// A rung whose stored value a client can send once at sign-up.
    @Sendable static func applyLegacyRung(_ policy: inout Policy, from text: String) -> String? {
        guard let rung = Rung(rawValue: text), rung.endpoint != .minute else { return nil }
        policy.legacyRung = rung
        return text
    }

    private static func pair(_ text: String) -> (name: String, value: String)? {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return sides.count == 2 ? (String(sides[0]), String(sides[1])) : nil
    }

    /// A path that every backend reads alike; it may end in `/`, which clients then send.
    private static func isEndpointPath(_ text: String) -> Bool {
        let path = Array(text.utf8)
        return (2...longestPath).contains(path.count) && path[0] == UInt8(ascii: "/")
            && !path.contains(UInt8(ascii: "%")) && PathReadings(path.span).ambiguity == nil
    }

    private static func isParameterName(_ text: String) -> Bool {
        (1...longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
            }
    }
}
