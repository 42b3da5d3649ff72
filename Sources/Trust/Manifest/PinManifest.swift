import CountersignWire

/// A set of pins that takes the place of the built-in one while the app runs.
///
/// A JSON object: `{"app":NAME,"version":N,"not_before":T,"not_after":T,"hosts":[{"pattern":"**.example.com",
/// "mode":"enforce","pins":["sha256/…"],"backups":["sha256/…"]}]}`, times in whole Unix seconds. Members that are not
/// named here are refused: a demand that is not understood is none that is kept.
public struct PinManifest: Sendable {
    /// Whom it is for: a team may sign for several apps with one key.
    public let app: String
    /// Grows with each manifest of the app, and is never used twice; from 1 on.
    public let version: Int
    /// From when to when it may be taken up; whole Unix seconds, the last one included.
    public let validity: ClosedRange<Int64>
    /// Its rules, each of pins.
    public let rules: [Trust.Rule]

    /// From the JSON above.
    public init(json: [UInt8]) throws(ManifestProblem) {
        let reader = try ManifestReader(json, depth: 8)
        let root = try reader.object(
            reader.root, "the manifest", ["app", "version", "not_before", "not_after", "hosts"])
        app = try reader.text(root, "app")
        version = try reader.integer(root, "version", 1...Int.max)
        let times = 0...253_402_300_799  // the year 9999
        let first = try reader.integer(root, "not_before", times)
        let last = try reader.integer(root, "not_after", times)
        guard first <= last else { throw .malformed("not_after: expected a time after not_before") }
        validity = Int64(first)...Int64(last)
        var rules: [Trust.Rule] = []
        for host in try reader.list(root, "hosts") { rules.append(try reader.rule(host)) }
        guard !rules.isEmpty else { throw .malformed("hosts: expected at least one") }
        self.rules = rules
    }
}

/// Why a manifest is not taken up. What was in force stays in force.
public enum ManifestProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// It is not what a manifest is: what was found, and what was expected.
    case malformed(String)
    /// None of the keys has signed it.
    case badSignature
    /// It is for that app.
    case otherApp(String)
    /// It is no newer than the version that is in force.
    case notNewer(version: Int, inForce: Int)
    /// Its time has not come; whole Unix seconds.
    case notYetValid(from: Int64)
    /// Its time is over; whole Unix seconds.
    case expired(at: Int64)
    /// The store cannot be read or written.
    case store(String)

    /// One line for a log.
    public var description: String {
        switch self {
        case .malformed(let detail): "pin manifest: \(detail)"
        case .badSignature: "pin manifest: none of the known keys has signed it"
        case .otherApp(let app): "pin manifest: it is for the app `\(app)`"
        case .notNewer(let version, let inForce):
            "pin manifest: version \(version); expected one above \(inForce), which is in force"
        case .notYetValid(let time): "pin manifest: not valid before \(time)"
        case .expired(let time): "pin manifest: not valid after \(time)"
        case .store(let detail): "pin manifest: \(detail)"
        }
    }
}
