import CountersignWire

/// What each of the backend's routes requires of an app's callers. The rule with the longest path that equals
/// the request's path, or is a prefix of it by whole segments, applies.
package struct RouteRules: Sendable, Equatable {
    /// Sorted: longest paths first, and for one path the rules that name methods first.
    package let rules: [RouteRule]
    /// The decision for all routes, if the rules do not differ.
    private let uniform: Decision
    /// Whether routes have different requirements. If so, a request's path must have one interpretation.
    package let differ: Bool
    /// Whether a route has limits of its own.
    package let limitTraffic: Bool

    package static let most = 256

    /// `rules` must contain a default rule for `/` without methods, and no two rules with the same path and
    /// methods; nil otherwise, and for more than ``most``.
    package init?(_ rules: [RouteRule]) {
        guard rules.count <= RouteRules.most, rules.contains(where: \.isForAll) else {
            return nil
        }
        for (index, rule) in rules.enumerated() where rules[..<index].contains(where: rule.replaces) {
            return nil
        }
        self.init(checked: rules)
    }

    /// The same requirement for all routes.
    package init(all level: RouteRule.Level) { self.init(checked: [RouteRule(all: level)]) }

    private init(checked rules: [RouteRule]) {
        self.rules = rules.sorted { left, right in
            if left.prefix.count != right.prefix.count { return left.prefix.count > right.prefix.count }
            if left.prefix != right.prefix { return left.prefix.lexicographicallyPrecedes(right.prefix) }
            if left.methods.isEmpty != right.methods.isEmpty { return right.methods.isEmpty }
            return left.methods.lexicographicallyPrecedes(right.methods) { $0.lexicographicallyPrecedes($1) }
        }
        // Rules with the same rates differ, because each counts its own requests.
        differ =
            rules.count > 1
            && rules.contains {
                $0.level != rules[0].level || $0.enforcement != rules[0].enforcement
                    || $0.limits != rules[0].limits || !$0.limits.rates.isEmpty
            }
        limitTraffic = rules.contains { !$0.limits.isEmpty }
        uniform = Decision(rules[0], at: 0)
    }

    /// A copy with `rule`, which replaces the rule with the same path and methods; nil if there would be too
    /// many.
    package func setting(_ rule: RouteRule) -> RouteRules? {
        RouteRules(rules.filter { !rule.replaces($0) } + [rule])
    }

    /// A copy without the rule for that path and those methods; nil if there is none, and for `/` without
    /// methods, which must stay.
    package func removing(prefix: [UInt8], methods: [[UInt8]]) -> RouteRules? {
        let named = RouteRule(prefix: prefix, methods: methods, level: .open)
        guard let named, !named.isForAll, rules.contains(where: named.replaces) else { return nil }
        return RouteRules(rules.filter { !named.replaces($0) })
    }

    // MARK: Judging

    /// What a route requires of a request.
    package struct Decision: Sendable, Equatable {
        package let level: RouteRule.Level
        /// Nil for the app's setting.
        package let enforcement: Enforcement?
        /// Which of ``RouteRules/rules`` decides the level.
        package let index: Int
    }

    /// The decision for all routes; nil if the rules differ.
    var uniformDecision: Decision? { differ ? nil : uniform }

    /// What the request's route requires. The path as sent may match one rule, and the path as a lenient
    /// backend reads it (``PathReadings``, ``PathMatch``) another; the strictest applies. If rules differ, a
    /// path that is ambiguous in any other way is refused as `malformed`.
    package func decision(for request: Request) throws(Refusal) -> Decision {
        try decision(
            method: request.head.span.extracting(request.method.range),
            path: request.head.span.extracting(request.path.range))
    }

    package func decision(method: Span<UInt8>, path: Span<UInt8>) throws(Refusal) -> Decision {
        guard differ else { return uniform }
        var decision: Decision?
        try forEachRule(for: method, at: path) { index in
            let found = Decision(rules[index], at: index)
            decision = decision?.stricter(found) ?? found
        }
        // The default rule applies to every path.
        return decision ?? uniform
    }

    /// The rules whose limits apply to a request: those of each reading of its path, so that no variant of a
    /// limited route's path evades the limits.
    package func limiting(method: Span<UInt8>, path: Span<UInt8>) throws(Refusal) -> [RouteRule] {
        guard differ else { return rules[0].limits.isEmpty ? [] : [rules[0]] }
        var found: Set<Int> = []
        try forEachRule(for: method, at: path) { found.insert($0) }
        return found.sorted().map { rules[$0] }.filter { !$0.limits.isEmpty }
    }

    /// Calls `body` with each rule that may apply to the request, by any reading of its path. Refuses a path
    /// whose readings are not known.
    private func forEachRule(
        for method: Span<UInt8>, at path: Span<UInt8>, _ body: (Int) -> Void
    ) throws(Refusal) {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else {
            throw Refusal(.malformed, detail: "the path begins with no /")
        }
        let readings = PathReadings(path)
        if let ambiguity = readings.ambiguity {
            throw Refusal(
                .malformed,
                detail:
                    "the path has \(ambiguity); where routes ask for different things it must have "
                    + "one reading"
            )
        }
        forEachRule(for: method, reading: path, body)
        for other in readings.others { forEachRule(for: method, reading: other.span, body) }
    }

    /// The longest rules that match the path exactly, and the longest that match it loosely. Of the rules for
    /// one path, those that name the method apply; without any, the rule for all methods.
    private func forEachRule(for method: Span<UInt8>, reading path: Span<UInt8>, _ body: (Int) -> Void) {
        var exact: Int?
        var loose: Int?
        var last: RouteRule?
        for (index, rule) in rules.enumerated() where rule.applies(to: method) {
            let length = rule.prefix.count
            if let exact, length < exact { break }
            let match = PathMatch(path, with: rule.prefix)
            guard match == .exact || match == .loose && length == loose ?? length else { continue }
            if match == .exact { exact = length }
            loose = loose ?? length
            if let last, last.prefix == rule.prefix, rule.methods.isEmpty { continue }
            last = rule
            body(index)
        }
    }
}

extension RouteRules.Decision {
    fileprivate init(_ rule: RouteRule, at index: Int) {
        self.init(level: rule.level, enforcement: rule.enforcement, index: index)
    }

    /// The higher level; observing only if both observe.
    fileprivate func stricter(_ other: Self) -> Self {
        Self(
            level: max(level, other.level),
            enforcement: Enforcement.stricter(of: enforcement, and: other.enforcement),
            index: other.level > level ? other.index : index)
    }
}

extension Enforcement {
    /// Observing only if both observe. Nil stands for the app's setting, which is either of the two.
    fileprivate static func stricter(of one: Enforcement?, and other: Enforcement?) -> Enforcement? {
        switch (one, other) {
        case (.enforce, _), (_, .enforce): .enforce
        case (nil, _), (_, nil): nil
        case (.observe(let one), .observe(let other)): .observe(until: min(one, other))
        }
    }
}

extension RouteRule {
    fileprivate func applies(to method: Span<UInt8>) -> Bool {
        guard !methods.isEmpty else { return true }
        for name in methods where method.matches(name.span) { return true }
        return method.matches("HEAD") && methods.contains { $0.span.matches("GET") }
    }
}
