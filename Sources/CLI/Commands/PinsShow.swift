import CountersignTrust
import CountersignWire

extension Command {
    static let pinsShow = Command(
        words: ["pins", "show"], summary: "check a signed pin manifest, and show what it says",
        positionals: [Positional(name: "FILE")], options: [PinKey.publicOption, .json]
    ) { (run) throws(Fault) in
        let key = try PinKey.publicKey(run)
        let manifest = try VerifiedManifest(inFile: run.required("FILE"), signedWith: key).manifest
        try run.print(manifest.shown) {
            let span = "\(Moment.text(manifest.validity.lowerBound)) to \(Moment.text(manifest.validity.upperBound))"
            let head = "app:      \(manifest.app)\nversion:  \(manifest.version)\nvalid:    \(span)"
            let rules = manifest.rules.map { rule in
                let only = rule.mode == .reportOnly ? " (reports only)" : ""
                return "\(rule.pattern)\(only)\n" + rule.policy.pins.map { "  \($0)" }.joined(separator: "\n")
            }
            return ([head] + rules).joined(separator: "\n")
        }
        return .success
    }
}

extension PinManifest {
    fileprivate var shown: JSONValue {
        let hosts = rules.map { rule -> JSONValue in
            [
                "pattern": .string(rule.pattern.description),
                "mode": rule.mode == .reportOnly ? "report-only" : "enforce",
                "pins": .strings(rule.policy.pins.map(\.description)),
            ]
        }
        return [
            "app": .string(app), "version": .integer(Int64(version)), "not_before": .integer(validity.lowerBound),
            "not_after": .integer(validity.upperBound), "hosts": .array(hosts),
        ]
    }
}
