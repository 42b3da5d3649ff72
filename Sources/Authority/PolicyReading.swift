import CountersignGate
import CountersignSchemes

/// How each policy value is read: from text into the policy, and back to its one spelling.
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
            let hours = number(text.dropFirst().prefix(2)), let minutes = number(text.suffix(2)), minutes < 60,
            hours * 60 + minutes <= 14 * 60
        else { return nil }
        let seconds = (hours * 60 + minutes) * 60
        policy.timezoneOffset = bytes[0] == UInt8(ascii: "-") ? -seconds : seconds
        return seconds == 0 ? "+00:00" : text
    }

    @Sendable static func applyFormMD5Key(_ policy: inout Policy, from text: String) -> String? {
        guard let place = FormMD5.KeyPlace(rawValue: text) else { return nil }
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
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
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

    /// Source: RFC 9651 §3.2, what a dictionary's key may be.
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
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"): true
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

    /// Fields that are the connection's, or that the gateway alone may write: no policy lets them through.
    private static func isReserved(_ name: String) -> Bool {
        let connection = [
            "connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer", "upgrade", "host",
            "content-length", "expect",
        ]
        return connection.contains(name) || name.hasPrefix("proxy-") || name.hasPrefix("countersign-")
            || name.hasPrefix("countersign_") || name == "countersign"
    }
}
