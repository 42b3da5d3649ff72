import CountersignGate
import CountersignWire

/// The limits of a route as text: names, which are those of the command's options, and values.
extension RouteLimits {
    /// The most bytes that a limit may name.
    package static let mostBytes = 1 << 46

    /// Every name of a limit.
    package static let names =
        RequestRates.Subject.allCases.map { "rate-\($0.rawValue)" } + ["max-body", "max-head"]

    /// Sets the limit of that name. Throws a usage error that names the option and what was expected.
    package mutating func set(_ name: String, to value: String) throws(OperationalError) {
        if let subject = RequestRates.Subject.allCases.first(where: { "rate-\($0.rawValue)" == name }) {
            guard let rate = RequestRate(value) else {
                throw OperationalError(.usage, message: "--\(name) `\(value)`: expected \(RateText.expected)")
            }
            return rates[subject] = rate
        }
        guard let bytes = PolicyKey.number(value[...]), (0...RouteLimits.mostBytes).contains(bytes) else {
            throw OperationalError(
                .usage,
                message:
                    "--\(name) `\(value)`: expected a whole number of bytes, at most \(RouteLimits.mostBytes)"
            )
        }
        if name == "max-body" { bodyBytes = bytes } else { headBytes = bytes }
    }

    /// Reads `NAME=VALUE` of a stored rule: nil if the name is of no limit, false if the value is not valid.
    mutating func read(word: Substring) -> Bool? {
        guard let equals = word.firstIndex(of: "="),
            RouteLimits.names.contains(String(word[..<equals]))
        else { return nil }
        do {
            try set(String(word[..<equals]), to: String(word[word.index(after: equals)...]))
            return true
        } catch {
            return false
        }
    }
}
