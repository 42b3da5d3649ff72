/// Prometheus' text form of metrics. Source: prometheus.io, "Exposition formats", version 0.0.4.
struct Exposition {
    enum Kind: String { case counter, gauge }

    static let type = "text/plain; version=0.0.4; charset=utf-8"
    private(set) var text = ""

    /// A metric; its samples follow.
    mutating func describe(_ name: String, _ kind: Kind, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    mutating func sample(_ name: String, _ labels: [(name: String, value: String)], _ value: some BinaryInteger) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(Exposition.escaped($0.value))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(value)\n"
    }

    /// A metric with a single sample.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        describe(name, kind, help)
        sample(name, [], value)
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
