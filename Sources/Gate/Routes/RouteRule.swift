import CountersignWire

/// What the backend's routes below one path require of their callers. Source: docs/protocol.md, "Routes of
/// the backend".
package struct RouteRule: Sendable, Equatable {
    /// What a route requires; each level includes those before it.
    package enum Level: String, Sendable, Comparable, CaseIterable {
        /// Nothing: every request is forwarded; without a signature, it is forwarded without an identity.
        case open
        /// A release's signature, or the equivalent proof of the app's schemes.
        case signed
        /// A live session of an account.
        case session
        /// Also a signature by the key of the session's device.
        case device

        package static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }

        private var rank: Int {
            switch self {
            case .open: 0
            case .signed: 1
            case .session: 2
            case .device: 3
            }
        }
    }

    /// `/`, or a path that begins with `/` and does not end with it: visible ASCII without ambiguity
    /// (``PathReadings``).
    package let prefix: [UInt8]
    /// In upper case; empty means all methods. `GET` includes `HEAD`, which backends handle with the same
    /// code.
    package let methods: [[UInt8]]
    package let level: Level
    /// Nil for the app's setting.
    package let enforcement: Enforcement?
    /// The traffic that the routes of this rule take.
    package let limits: RouteLimits

    /// Nil if `prefix` or a method does not have that form.
    package init?(
        prefix: [UInt8], methods: [[UInt8]] = [], level: Level, enforcement: Enforcement? = nil,
        limits: RouteLimits = RouteLimits()
    ) {
        guard RouteRule.isPrefix(prefix), methods.count <= 16, methods.allSatisfy(RouteRule.isMethod) else {
            return nil
        }
        self.prefix = prefix
        self.methods = methods.sorted { $0.lexicographicallyPrecedes($1) }
        self.level = level
        self.enforcement = enforcement
        self.limits = limits
    }

    /// A rule for all routes and methods.
    init(all level: Level) {
        prefix = [UInt8(ascii: "/")]
        methods = []
        self.level = level
        enforcement = nil
        limits = RouteLimits()
    }

    /// Whether this is the default rule, which applies to requests that no other rule covers.
    package var isForAll: Bool { prefix.count == 1 && methods.isEmpty }

    /// Whether this rule has the same path and methods as the other: a path has at most one rule for each set
    /// of methods.
    package func replaces(_ other: RouteRule) -> Bool { prefix == other.prefix && methods == other.methods }

    /// The path, for people.
    package var prefixText: String { String(decoding: prefix, as: UTF8.self) }

    /// The command that gives the routes of this rule another level.
    func command(setting level: Level, of app: String) -> String {
        let names = methods.map { String(decoding: $0, as: UTF8.self) }
        return "countersign route set \(app) \(prefixText) --require \(level.rawValue)"
            + (names.isEmpty ? "" : " --methods \(names.joined(separator: ","))")
            + limits.texts.map { " --\($0.name) \($0.value)" }.joined()
    }

    private static func isPrefix(_ path: [UInt8]) -> Bool {
        guard path.first == UInt8(ascii: "/"), path.count <= 256 else { return false }
        if path.count == 1 { return true }
        guard path.last != UInt8(ascii: "/"), PathReadings(path.span).ambiguity == nil else { return false }
        return !path.contains { "%,".utf8.contains($0) }
    }

    private static func isMethod(_ method: [UInt8]) -> Bool {
        (1...32).contains(method.count)
            && method.allSatisfy { byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || byte == UInt8(ascii: "-")
            }
    }
}

/// Whether the gateway refuses a request that fails verification, or forwards it marked with the verdict.
package enum Enforcement: Sendable, Equatable {
    case enforce
    /// Forwards until that time, in whole Unix seconds; enforces from then on.
    case observe(until: Int64)

    /// The longest period of observing, in seconds: observing is for a migration and must end.
    package static let mostSeconds: Int64 = 30 * 86_400

    package func isObserving(at now: Int64) -> Bool {
        if case .observe(let until) = self { return now < until }
        return false
    }
}
