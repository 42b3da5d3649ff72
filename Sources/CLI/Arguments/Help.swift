import CountersignWire

/// Help, made from the commands' own descriptions.
enum Help {
    static func overview(of commands: [Command]) -> String {
        let rows = commands.map { ($0.name, $0.summary) }
        return """
            Countersign proves that each request comes from a live version of your app, unread, unchanged and once.

            usage: countersign COMMAND [options]

            \(table(rows))

            `countersign COMMAND --help` says more. Exit status: 0 success, 1 failed or refused, 2 used wrongly,
            3 the server or a store could not be reached.
            """
    }

    static func text(for words: [String], in commands: [Command]) throws(Fault) -> String {
        if words.isEmpty { return overview(of: commands) }
        if let command = commands.first(where: { $0.words == words }) { return text(of: command) }
        let family = commands.filter { $0.words.starts(with: words) }
        guard family.isEmpty else { return overview(of: family) }
        throw Fault(.usage, "`\(words.joined(separator: " "))`: no such command")
    }

    static func text(of command: Command) -> String {
        var text = "\(command.summary)\n\nusage: \(usage(of: command))\n\n\(table(command.allOptions.map(row)))"
        if !command.notes.isEmpty { text += "\n\n\(command.notes)" }
        return text
    }

    static func usage(of command: Command) -> String {
        var words = ["countersign", command.name]
        if !command.options.isEmpty { words.append("[options]") }
        words += command.positionals.map { positional in
            switch positional.presence {
            case .required: positional.name
            case .optional: "[\(positional.name)]"
            case .remaining: "-- \(positional.name)…"
            }
        }
        return words.joined(separator: " ")
    }

    private static func row(_ option: Option) -> (String, String) {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        return switch option.kind {
        case .flag: ("\(letter)--\(option.name)", option.meaning)
        case .value(let what): ("\(letter)--\(option.name) \(what)", option.meaning)
        case .list(let what): ("\(letter)--\(option.name) \(what)", "\(option.meaning) (may be repeated)")
        }
    }

    /// Two columns; what is too wide for the first gets a line of its own.
    private static func table(_ rows: [(String, String)]) -> String {
        let width = min(rows.map { $0.0.count }.max() ?? 0, 28)
        return rows.map { left, right in
            if left.count > width { return "  \(left)\n  \(String(repeating: " ", count: width))  \(right)" }
            return "  \(left)\(String(repeating: " ", count: width - left.count))  \(right)"
        }.joined(separator: "\n")
    }
}
