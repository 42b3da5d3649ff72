import CountersignGate
import CountersignSchemes
import CountersignWire

/// One setting that a team may choose for its app: its syntax, meaning and parser. The table
/// `PolicyKey.all` is the only description; `app policy` lists it.
package struct PolicyKey: Sendable {
    /// Whether a value may be shown after it is set.
    package enum Visibility: Sendable {
        case shown
        /// Kept sealed, never printed.
        case secret
    }

    package var name: String
    /// The placeholder for the value in help.
    package var value: String
    package var meaning: String
    /// The default.
    package var fallback: String
    /// The permitted values, for the message about an invalid one.
    package var expected: String
    package var visibility: Visibility
    /// Applies the value to the policy and returns its canonical form; nil if the value is invalid.
    let apply: @Sendable (inout Policy, String) -> String?

    /// For help: each key, its meaning and its default.
    package static func described(_ keys: [PolicyKey]) -> String {
        keys.map { "  \($0.name)=\($0.value)\n      \($0.meaning)\n      default: \($0.fallback)" }
            .joined(separator: "\n")
    }

    package static func named(_ name: String) throws(OperationalError) -> PolicyKey {
        if let key = all.first(where: { $0.name == name }) { return key }
        let known = all.map(\.name).joined(separator: ", ")
        throw OperationalError(.usage, message: "policy key `\(name)`: unknown; known are \(known)")
    }

    /// The canonical form of a value; throws a usage error if it is invalid.
    package func canonical(_ text: String) throws(OperationalError) -> String {
        var policy = Policy()
        guard let spelled = apply(&policy, text) else {
            let shown = visibility != .secret ? " `\(text)`" : ""
            throw OperationalError(.usage, message: "policy \(name)\(shown): expected \(expected)")
        }
        return spelled
    }

    /// Applies a value that ``canonical(_:)`` has returned.
    package func set(_ value: String, in policy: inout Policy) {
        _ = apply(&policy, value)
    }

    /// Parses and checks `K=V` of `--set`. An empty value restores the default. `now` is in whole Unix
    /// seconds, for settings that expire.
    package static func change(
        _ assignment: String, at now: Int64 = 0
    ) throws(OperationalError) -> (key: PolicyKey, value: String?) {
        guard let equals = assignment.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw OperationalError(.usage, message: "--set `\(assignment)`: expected KEY=VALUE")
        }
        let key = try named(String(assignment[..<equals]))
        var value = String(assignment[assignment.index(after: equals)...])
        if key.name == "enforcement", !value.isEmpty {
            value = try Enforcement.requested(value, at: now).text
        }
        return (key, value.isEmpty ? nil : try key.canonical(value))
    }

    /// The same for one release, which may only override settings of the gate. An empty value restores the
    /// app's setting.
    package static func changeOfRelease(_ assignment: String) throws(OperationalError) -> (
        key: PolicyKey, value: String?
    ) {
        let (key, value) = try change(assignment)
        guard (gateKeys + traffic).contains(where: { $0.name == key.name }) else {
            throw OperationalError(
                .usage,
                message: "policy \(key.name): belongs to the app, whose accounts all its releases share; "
                    + "`countersign app policy` sets it")
        }
        return (key, value)
    }
}

/// The parsers of policy values: from text into the policy, and back to the canonical form.
extension PolicyKey {
    static func oneOf(_ words: String...) -> @Sendable (inout Policy, String) -> String? {
        { _, text in words.contains(text) ? text : nil }
    }

    @Sendable static func applySchemes(_ policy: inout Policy, from text: String) -> String? {
        var names: [SchemeName] = []
        for part in parts(text) {
            guard let name = SchemeName(rawValue: part), !names.contains(name) else { return nil }
            names.append(name)
        }
        policy.schemes = Set(names)
        return names.map(\.rawValue).joined(separator: ",")
    }

    @Sendable static func applyWindow(_ policy: inout Policy, from text: String) -> String? {
        var spelled: [String] = []
        for part in parts(text) {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let last = sides.last, let seconds = seconds(last) else { return nil }
            if sides.count == 1 {
                guard policy.window == nil else { return nil }
                policy.window = seconds
                spelled.append("\(seconds)s")
            } else {
                guard let name = SchemeName(rawValue: String(sides[0])), SchemeName.signing.contains(name),
                    policy.windows[name] == nil
                else { return nil }
                policy.windows[name] = seconds
                spelled.append("\(name.rawValue)=\(seconds)s")
            }
        }
        return spelled.joined(separator: ",")
    }

    @Sendable static func applyTimezone(_ policy: inout Policy, from text: String) -> String? {
        if text == "Z" || text == "UTC" {
            policy.timezoneOffset = 0
            return "+00:00"
        }
        let bytes = Array(text.utf8)
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"),
            bytes[0] == UInt8(ascii: "+") || bytes[0] == UInt8(ascii: "-"),
            let hours = number(text.dropFirst().prefix(2)), let minutes = number(text.suffix(2)),
            minutes < 60,
            hours * 60 + minutes <= 14 * 60
        else { return nil }
        let seconds = (hours * 60 + minutes) * 60
        policy.timezoneOffset = bytes[0] == UInt8(ascii: "-") ? -seconds : seconds
        return seconds == 0 ? "+00:00" : text
    }

    @Sendable static func applyFormMD5Key(_ policy: inout Policy, from text: String) -> String? {
        guard let place = FormMD5.KeyPosition(rawValue: text) else { return nil }
        policy.formMD5Key = place
        return text
    }

    @Sendable static func applyForward(_ policy: inout Policy, from text: String) -> String? {
        let names = parts(text)
        guard names.allSatisfy({ isFieldName($0) && !isReserved($0) }), Set(names).count == names.count else {
            return nil
        }
        policy.forwardedFields = Set(names)
        return names.joined(separator: ",")
    }

    static func onOff(
        _ set: @escaping @Sendable (inout Policy, Policy.Permission) -> Void
    ) -> @Sendable (inout Policy, String) -> String? {
        { policy, text in
            guard text == "on" || text == "off" else { return nil }
            set(&policy, text == "on" ? .allowed : .refused)
            return text
        }
    }

    @Sendable static func applyReplay(_ policy: inout Policy, from text: String) -> String? {
        let known: [SchemeName] = [.sigV4, .authV1]
        if let rule = Policy.ReplayRule(rawValue: text) {
            for scheme in known { policy.replays[scheme] = rule }
            return text
        }
        for part in parts(text) {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
                String.init)
            guard sides.count == 2, let scheme = SchemeName(rawValue: sides[0]), known.contains(scheme),
                let rule = Policy.ReplayRule(rawValue: sides[1]), policy.replays[scheme] == nil
            else { return nil }
            policy.replays[scheme] = rule
        }
        return text
    }

    @Sendable static func applyCover(_ policy: inout Policy, from text: String) -> String? {
        let names = parts(text)
        guard names.allSatisfy(isFieldName), Set(names).count == names.count else { return nil }
        policy.requiredFields = Set(names)
        return names.joined(separator: ",")
    }

    /// Source: RFC 9651 §3.2, the keys of a dictionary.
    @Sendable static func applyLabel(_ policy: inout Policy, from text: String) -> String? {
        let allowed = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "*"): true
            default: false
            }
        }
        guard allowed, (1...64).contains(text.utf8.count), let first = text.utf8.first,
            first == UInt8(ascii: "*") || first >= UInt8(ascii: "a")
        else { return nil }
        policy.signatureLabel = text
        return text
    }

    @Sendable static func applyPresigned(_ policy: inout Policy, from text: String) -> String? {
        guard let seconds = seconds(text[...]) else { return nil }
        policy.presignedLifetime = seconds
        return "\(seconds)s"
    }

    @Sendable static func applyPublicURL(_ policy: inout Policy, from text: String) -> String? {
        let hosts = ["https://", "http://"].compactMap { text.hasPrefix($0) ? text.dropFirst($0.count) : nil }
        let allowed = hosts.first?.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                true
            default: false
            }
        }
        guard allowed == true, hosts.first?.isEmpty == false, text.utf8.count <= 264 else { return nil }
        policy.publicURL = text
        return text
    }

    @Sendable static func applySecret(_ policy: inout Policy, from text: String) -> String? {
        (1...256).contains(text.utf8.count) ? text : nil
    }

    static func parts(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    /// `90s`, `5m` or `12h`, from a second to a day.
    package static func seconds(_ text: Substring) -> Int? {
        let unit =
            switch text.last {
            case "s": 1
            case "m": 60
            case "h": 3600
            default: 0
            }
        guard let count = number(text.dropLast()), (1...86_400).contains(count),
            (1...86_400).contains(count * unit)
        else { return nil }
        return count * unit
    }

    static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }

    private static func isFieldName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
                case UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }

    /// Fields that belong to the connection, or that only the gateway may write: no policy forwards them.
    private static func isReserved(_ name: String) -> Bool {
        let connection = [
            "connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer", "upgrade",
            "host",
            "content-length", "expect",
        ]
        return connection.contains(name) || name.hasPrefix("proxy-") || name.hasPrefix("countersign-")
            || name.hasPrefix("countersign_") || name == "countersign"
    }
}
