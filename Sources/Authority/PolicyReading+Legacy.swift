import CountersignGate
import CountersignSchemes
import CountersignWire

/// How the values are read that old clients' doors go by.
extension PolicyKey {
    /// Paths that an app may name, all doors together.
    private static let mostPaths = 16
    private static let longestPath = 128
    private static let longestName = 64

    /// `DOOR:/path,…`. A door may have several paths, a path is one door's.
    @Sendable static func applyLegacyPaths(_ policy: inout Policy, from text: String) -> String? {
        let parts = parts(text)
        guard parts.count <= mostPaths else { return nil }
        var paths: [Policy.LegacyPath] = []
        for part in parts {
            guard let (name, path) = pair(part), let door = Policy.LegacyDoor(rawValue: name),
                isDoorPath(path)
            else {
                return nil
            }
            paths.append(Policy.LegacyPath(door, at: Array(path.utf8)))
        }
        policy.legacyPaths = paths
        guard LegacyDoors(policy).areApart else { return nil }
        return text
    }

    /// `NAME:parameter,…`, each name once, and no two parameters alike.
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

    /// A rung whose value a client can hand over once and for all.
    @Sendable static func applyLegacyRung(_ policy: inout Policy, from text: String) -> String? {
        guard let rung = Rung(rawValue: text), rung.door != .minute else { return nil }
        policy.legacyRung = rung
        return text
    }

    private static func pair(_ text: String) -> (name: String, value: String)? {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return sides.count == 2 ? (String(sides[0]), String(sides[1])) : nil
    }

    /// One that every backend reads alike; it may end in `/`, which clients then send.
    private static func isDoorPath(_ text: String) -> Bool {
        let path = Array(text.utf8)
        return (2...longestPath).contains(path.count) && path[0] == UInt8(ascii: "/")
            && !path.contains(UInt8(ascii: "%")) && LoosePath.ambiguity(of: path.span) == nil
    }

    private static func isParameterName(_ text: String) -> Bool {
        (1...longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
            }
    }
}
