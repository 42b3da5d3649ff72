import CountersignServer
import CountersignWire

extension Command {
    static let doctor = Command(
        words: ["doctor"], summary: "look for what is wrong with a deployment, and say what mends it",
        options: [
            .value(
                "config", placeholder: "F", meaning: "settings as JSON with comments (COUNTERSIGN_CONFIG)"),
            .flag("strict", meaning: "status 1 also if there are only warnings"), .json,
        ] + Setting.options,
        notes: """
            Give it the settings that `serve` is given. It looks at the settings, the clock (beside the \
            store and the backend's answer), the disk, who may read the data folder, the master key, \
            every page, row and record of the store, the backend, the certificate, the listener, \
            policies that are wider than usual, events that wait for webhooks, and pin manifests. It \
            mends nothing, and changes no row; it sends the backend one HEAD request. Status 1 if \
            something is wrong.
            """
    ) { (run) throws(OperationalError) in
        var doctor = Doctor(
            Configuration.read(from: try run.settingSources()), environment: run.environment.variables,
            now: run.now)
        let findings = doctor.run()
        let isWell = !findings.contains { $0.verdict == .error }
        let warnings = findings.filter { $0.verdict == .warning }.count
        try run.print([
            "well": .bool(isWell), "warnings": .integer(Int64(warnings)),
            "findings": .array(findings.map(\.json)),
        ]) {
            findings.map(\.text).joined(separator: "\n")
        }
        guard isWell else { return .failed }
        return warnings > 0 && run.arguments.has("strict") ? .failed : .success
    }
}

extension DoctorFinding {
    fileprivate var json: JSONValue {
        [
            "topic": .string(topic.rawValue), "verdict": .string(verdict.rawValue),
            "message": .string(message), "expected": .optional(expected), "command": .optional(command),
        ]
    }

    fileprivate var text: String {
        let mark =
            switch verdict {
            case .well: "✓"
            case .warning: "!"
            case .error: "✗"
            }
        var lines = ["\(mark) \(topic.rawValue): \(message)"]
        if let expected { lines.append("    expected: \(expected)") }
        if let command { lines.append("    \(command)") }
        return lines.joined(separator: "\n")
    }
}
