import CountersignWire

/// One thing that is wrong with the settings, or with a file that they name.
package struct ConfigurationProblem: Sendable, Equatable {
    /// Whether `serve` starts all the same.
    package enum Severity: String, Sendable {
        /// `serve` would end with this message.
        case error
        /// `serve` starts, and an operator should know.
        case warning
    }

    /// Where a value was given.
    package struct Origin: Sendable, Equatable {
        /// `--name`, `COUNTERSIGN_NAME`, or `FILE: key`.
        package var place: String
        /// The settings file; nil for a flag or a variable.
        package var file: String?
        /// From 1.
        package var line: Int?

        package init(place: String, file: String? = nil, line: Int? = nil) {
            self.place = place
            self.file = file
            self.line = line
        }
    }

    package var severity = Severity.error
    /// One sentence: the place, what was found and what was expected. Contains no secret.
    package var message: String
    /// Nil where the problem is of no given value: a default, or the data folder.
    package var origin: Origin?
    /// The setting's name; nil where the problem is of no one setting.
    package var setting: String?
    /// The value that was found, with a URL's password masked; nil where `message` says all.
    package var found: String?
    /// What would be valid; nil where `message` says all.
    package var expected: String?

    package init(
        severity: Severity = .error, message: String, origin: Origin?, setting: String? = nil,
        found: String? = nil, expected: String? = nil
    ) {
        self.severity = severity
        self.message = message
        self.origin = origin
        self.setting = setting
        self.found = found
        self.expected = expected
    }

    /// As `--check-config` and `reload` print it: `settings.json:3: …` where the line is known.
    package var text: String {
        let word = severity == .warning ? "warning: " : ""
        guard let file = origin?.file, let line = origin?.line else { return word + message }
        let rest = message.hasPrefix("\(file): ") ? String(message.dropFirst(file.count + 2)) : message
        return "\(file):\(line): \(word)\(rest)"
    }

    package var json: JSONValue {
        [
            "severity": .string(severity.rawValue), "file": .optional(origin?.file),
            "line": origin?.line.map { .integer(Int64($0)) } ?? .null, "setting": .optional(setting),
            "found": .optional(found), "expected": .optional(expected), "message": .string(message),
        ]
    }
}
