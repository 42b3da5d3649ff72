import CountersignGate
import CountersignWire

/// The text of route rules in the store: `PREFIX LEVEL`, then `methods=GET,POST`, `enforce` or
/// `observe=SECONDS`, and limits such as `rate-account=20/second` and `max-body=4096`, if given; one rule per
/// line.
extension RouteRules {
    package init?(_ text: String) {
        var rules: [RouteRule] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard let rule = RouteRule(line) else { return nil }
            rules.append(rule)
        }
        self.init(rules)
    }

    package var text: String { rules.map(\.text).joined(separator: "\n") }
}

extension RouteRule {
    fileprivate init?(_ line: Substring) {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count >= 2, let level = Level(rawValue: String(words[1])) else { return nil }
        var methods: [[UInt8]] = []
        var enforcement: Enforcement?
        var limits = RouteLimits()
        for word in words.dropFirst(2) {
            if word.hasPrefix("methods=") {
                methods = word.dropFirst(8).split(separator: ",").map { Array($0.utf8) }
            } else if let isRead = limits.read(word: word) {
                guard isRead else { return nil }
            } else {
                guard let read = Enforcement(String(word)) else { return nil }
                enforcement = read
            }
        }
        self.init(
            prefix: Array(words[0].utf8), methods: methods, level: level, enforcement: enforcement,
            limits: limits)
    }

    package var methodTexts: [String] { methods.map { String(decoding: $0, as: UTF8.self) } }

    fileprivate var text: String {
        var words = [prefixText, level.rawValue]
        if !methods.isEmpty { words.append("methods=" + methodTexts.joined(separator: ",")) }
        if let enforcement { words.append(enforcement.text) }
        words += limits.texts.map { "\($0.name)=\($0.value)" }
        return words.joined(separator: " ")
    }
}

extension Enforcement {
    /// `enforce`, or `observe=` and whole Unix seconds.
    package init?(_ text: String) {
        if text == "enforce" {
            self = .enforce
        } else {
            guard text.hasPrefix("observe="), let until = Int64(text.dropFirst(8)), until >= 0 else {
                return nil
            }
            self = .observe(until: until)
        }
    }

    var endsByDate: Bool { if case .observe = self { true } else { false } }

    package var text: String {
        switch self {
        case .enforce: "enforce"
        case .observe(let until): "observe=\(until)"
        }
    }

    /// Parses a value of the command line: `enforce`; `observe`, for the longest time; `observe=14d`; or
    /// the stored form with its end. Throws a usage error for anything else, and for an end that is past or
    /// too far off. `now` is in whole Unix seconds.
    package static func requested(_ text: String, at now: Int64) throws(OperationalError) -> Enforcement {
        if text == "enforce" { return .enforce }
        var until: Int64?
        if text == "observe" {
            until = now + mostSeconds
        } else if text.hasPrefix("observe="), text.hasSuffix("d"),
            let days = Int64(text.dropFirst(8).dropLast())
        {
            until = (1...30).contains(days) ? now + days * 86_400 : nil
        } else if case .observe(let end)? = Enforcement(text) {
            until = end
        }
        guard let until, until > now, until <= now + mostSeconds else {
            throw OperationalError(
                .usage,
                message:
                    "enforcement `\(text)`: expected enforce, observe (for 30 days), or observe=14d (1 to "
                    + "30 days); it can be renewed")
        }
        return .observe(until: until)
    }
}
