import CountersignGate
import CountersignWire

/// What `anonymous` and `device-signed` are set to: all routes, none, or those at some paths and below them.
/// They stand for rules of routes, which are what is kept.
package enum RoutePaths: Sendable, Equatable {
    case all
    case under([[UInt8]])

    package init?(_ text: String) {
        switch text {
        case "all": self = .all
        case "none": self = .under([])
        default:
            let paths = text.split(separator: ",", omittingEmptySubsequences: false).map { Array($0.utf8) }
            guard Set(paths).count == paths.count,
                paths.allSatisfy({ $0.count > 1 && RouteRule(prefix: $0, level: .signed) != nil })
            else { return nil }
            self = .under(paths)
        }
    }
}

extension RouteRules {
    /// What an app of before this had: `anonymous`, `all` unless it was set, and `device-signed`, none unless
    /// it was.
    init?(anonymous: String?, deviceSigned: String?) {
        var rules = RouteRules(all: .signed)
        if let anonymous {
            guard let paths = RoutePaths(anonymous), let set = rules.setting(anonymous: paths) else { return nil }
            rules = set
        }
        if let deviceSigned {
            guard let paths = RoutePaths(deviceSigned), let set = rules.setting(deviceSigned: paths) else { return nil }
            rules = set
        }
        self = rules
    }

    /// Which routes a release opens by itself: in the place of all rules of levels `signed` and `session`. A
    /// path at or below one that asks for the device's signature stays that. Nil for too many.
    func setting(anonymous paths: RoutePaths) -> RouteRules? {
        let kept = rules.filter { $0.level == .open || $0.level == .device }
        switch paths {
        case .all: return RouteRules(kept, others: .signed)
        case .under(let prefixes):
            let added = prefixes.filter { path in !kept.contains { $0.level == .device && $0.holds(path) } }
            return RouteRules(kept + added.compactMap { RouteRule(prefix: $0, level: .signed) }, others: .session)
        }
    }

    /// Which routes ask for the device's signature: in the place of all rules of level `device`, and of those
    /// that are at or below these paths and ask for less. Nil for too many.
    func setting(deviceSigned paths: RoutePaths) -> RouteRules? {
        let others = rules.first { $0.isForAll && $0.level != .device }?.level ?? .session
        let kept = rules.filter { $0.level != .device }
        guard case .under(let prefixes) = paths else { return RouteRules(all: .device) }
        let added = prefixes.compactMap { RouteRule(prefix: $0, level: .device) }
        return RouteRules(
            kept.filter { rule in !added.contains { $0.holds(rule.prefix) } } + added, others: others)
    }

    /// With a rule for all others, where `rules` have none.
    private init?(_ rules: [RouteRule], others level: RouteRule.Level) {
        if rules.contains(where: \.isForAll) {
            self.init(rules)
        } else {
            guard let all = RouteRule(prefix: [UInt8(ascii: "/")], level: level) else { return nil }
            self.init(rules + [all])
        }
    }
}

extension RouteRule {
    /// Whether the path is this rule's or below it, without the case of letters.
    fileprivate func holds(_ path: [UInt8]) -> Bool {
        if prefix.count == 1 { return true }
        guard path.count >= prefix.count, path.count == prefix.count || path[prefix.count] == UInt8(ascii: "/") else {
            return false
        }
        return zip(prefix, path).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}
