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
    /// backend reads it, without case and with extensions, another; the stricter rule applies. If rules
    /// differ, a path that is ambiguous in any other way is refused as `malformed`.
    package func decision(for request: Request) throws(Refusal) -> Decision {
        try decision(
            method: request.head.span.extracting(request.method.range),
            path: request.head.span.extracting(request.path.range))
    }

    package func decision(method: Span<UInt8>, path: Span<UInt8>) throws(Refusal) -> Decision {
        guard differ else { return uniform }
        var (decision, readings) = (try ruling(for: method, at: path), try others(of: path))
        while let reading = readings.popLast() {
            decision = decision.stricter(try ruling(for: method, at: reading.span))
        }
        return decision
    }

    /// The rules whose limits apply to a request: those of each reading of its path, so that no variant of a
    /// limited route's path evades the limits.
    package func limiting(method: Span<UInt8>, path: Span<UInt8>) throws(Refusal) -> [RouteRule] {
        guard differ else { return rules[0].limits.isEmpty ? [] : [rules[0]] }
        var found: Set<Int> = []
        var (reading, readings) = (path.withUnsafeBufferPointer { Array($0) }, try others(of: path))
        while true {
            let (exact, loose) = try matches(for: method, at: reading.span)
            found.formUnion([exact, loose])
            guard let next = readings.popLast() else { break }
            reading = next
        }
        return found.sorted().map { rules[$0] }.filter { !$0.limits.isEmpty }
    }

    /// The other readings of a path. Refuses a path that is ambiguous for a reason other than programs, case,
    /// escapes and extensions.
    private func others(of path: Span<UInt8>) throws(Refusal) -> [[UInt8]] {
        if let ambiguity = LoosePath.ambiguity(of: path) {
            throw Refusal(
                .malformed,
                detail:
                    "the path has \(ambiguity); where routes ask for different things it must have "
                    + "one reading"
            )
        }
        let readings = PathReadings(path)
        guard !readings.isBeyondBound else {
            throw Refusal(
                .malformed,
                detail: "the path has more than \(PathReadings.mostPrograms) programs in it")
        }
        return readings.others
    }

    private func ruling(for method: Span<UInt8>, at path: Span<UInt8>) throws(Refusal) -> Decision {
        let (exact, loose) = try matches(for: method, at: path)
        return Decision(rules[exact], at: exact).stricter(Decision(rules[loose], at: loose))
    }

    /// The rule that applies to the path as it is, and the one that applies as a lenient backend reads it.
    /// The path must be unambiguous apart from case, escapes and extensions.
    private func matches(
        for method: Span<UInt8>, at path: Span<UInt8>
    ) throws(Refusal) -> (exact: Int, loose: Int) {
        var exact: Int?
        var loose: Int?
        for (index, rule) in rules.enumerated() where rule.applies(to: method) {
            if let loose, exact != nil, rules[loose].prefix.count > rule.prefix.count { break }
            if rule.covers(path), exact.map({ rules[$0].overlaps(rule) }) ?? true { exact = index }
            if rule.coversLoosely(path), loose.map({ rules[$0].isOutdone(by: rule) }) ?? true {
                loose = index
            }
        }
        guard let exact, let loose else { throw Refusal(.malformed, detail: "the path begins with no /") }
        return (exact, loose)
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
    /// Whether `other` replaces this rule for a request that matches both: its path has the same length and
    /// its level is higher. For the same path, the rule that names methods comes first and applies.
    fileprivate func isOutdone(by other: RouteRule) -> Bool {
        other.prefix.count == prefix.count && other.level > level
            && (other.prefix != prefix || !methods.isEmpty && !other.methods.isEmpty)
    }

    /// Whether both rules have the same path and name methods, and the other has the higher level, which
    /// applies to a method that both name.
    fileprivate func overlaps(_ other: RouteRule) -> Bool { other.prefix == prefix && isOutdone(by: other) }

    fileprivate func applies(to method: Span<UInt8>) -> Bool {
        guard !methods.isEmpty else { return true }
        for name in methods where method.matches(name.span) { return true }
        return method.matches("HEAD") && methods.contains { $0.span.matches("GET") }
    }

    /// Whether the path equals the rule's path or continues it with a `/`, byte for byte.
    fileprivate func covers(_ path: Span<UInt8>) -> Bool {
        let prefix = self.prefix
        guard prefix.count > 1 else { return path.count > 0 && path[0] == UInt8(ascii: "/") }
        guard path.count >= prefix.count, path.extracting(0..<prefix.count).matches(prefix.span) else {
            return false
        }
        return path.count == prefix.count || path[prefix.count] == UInt8(ascii: "/")
    }

    /// The same comparison as a lenient backend makes it: without case, with escapes decoded, and with an
    /// optional extension after each segment. `path` is unambiguous apart from these.
    fileprivate func coversLoosely(_ path: Span<UInt8>) -> Bool {
        let prefix = self.prefix
        guard prefix.count > 1 else { return path.count > 0 && path[0] == UInt8(ascii: "/") }
        var index = 0
        for expected in prefix {
            guard index < path.count else { return false }
            // An extension may follow any segment of the rule's path: `/api.cgi/pay`.
            if expected == UInt8(ascii: "/"), path[index] == UInt8(ascii: ".") {
                while index < path.count, path[index] != UInt8(ascii: "/") { index += 1 }
                guard index < path.count else { return false }
            }
            var byte = path[index]
            if byte == UInt8(ascii: "%"), let undone = PercentEncoding.byte(in: path, at: index + 1) {
                byte = undone
                index += 2
            }
            guard ASCII.lowercased(byte) == ASCII.lowercased(expected) else { return false }
            index += 1
        }
        return index == path.count || path[index] == UInt8(ascii: "/") || path[index] == UInt8(ascii: ".")
    }
}
