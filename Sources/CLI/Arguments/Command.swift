import CountersignWire

/// One command as users see it: its words, what follows them, and what it does.
struct Command: Sendable {
    /// `["app", "add"]`.
    var words: [String]
    var summary: String
    var positionals: [Positional] = []
    var options: [Option] = []
    /// More to know, shown below the options.
    var notes = ""
    var run: @Sendable (Invocation) throws(Fault) -> ExitStatus

    var name: String { words.joined(separator: " ") }
    /// With what every command has.
    var allOptions: [Option] { options + [.help] }
}

/// What stands after the command without a name.
struct Positional: Sendable {
    enum Presence: Sendable {
        case required, optional
        /// This word and all that follow, also such as look like options where they stand after `--`. The last positional.
        case remaining
    }

    var name: String
    var presence = Presence.required
}

/// What is given by name.
struct Option: Sendable {
    enum Kind: Sendable, Equatable {
        case flag
        /// Takes a value, shown as this in help; given twice, the last one counts.
        case value(String)
        /// May be given several times, and all count.
        case list(String)
    }

    var name: String
    var letter: Character?
    var kind: Kind
    var meaning: String

    static func flag(_ name: String, _ meaning: String, letter: Character? = nil) -> Option {
        Option(name: name, letter: letter, kind: .flag, meaning: meaning)
    }

    static func value(_ name: String, _ value: String, _ meaning: String, letter: Character? = nil) -> Option {
        Option(name: name, letter: letter, kind: .value(value), meaning: meaning)
    }

    static func list(_ name: String, _ value: String, _ meaning: String, letter: Character? = nil) -> Option {
        Option(name: name, letter: letter, kind: .list(value), meaning: meaning)
    }

    static let help = flag("help", "show this", letter: "h")
    static let json = flag("json", "print JSON")
    static let data = value("data", "DIR", "the data folder (COUNTERSIGN_DATA, else .countersign)")
}

extension Command {
    enum Found {
        case help(String)
        case run(Command, [String])
    }

    /// The command whose words the arguments begin with. Options that every command has may stand before it.
    static func find(_ arguments: [String], in commands: [Command]) throws(Fault) -> Found {
        var rest = arguments[...]
        var leading: [String] = []
        while let word = rest.first, word.hasPrefix("-"), word != "--" {
            leading.append(rest.removeFirst())
            if word == "--data", let value = rest.popFirst() { leading.append(value) }
        }
        if leading.contains("--version") { rest = ["version"]; leading.removeAll { $0 == "--version" } }
        if rest.first == "help" { return .help(try Help.text(for: Array(rest.dropFirst()), in: commands)) }
        if rest.isEmpty, leading.contains(where: { ["--help", "-h"].contains($0) }) {
            return .help(Help.overview(of: commands))
        }
        guard let first = rest.first else { throw Fault(.usage, "no command; `countersign --help` lists them") }
        if let command = commands.first(where: { rest.starts(with: $0.words) }) {
            return .run(command, leading + rest.dropFirst(command.words.count))
        }
        let family = commands.filter { $0.words.first == first }
        if family.isEmpty {
            throw Fault(.usage, "`\(first)`: no such command\(hint(for: rest.prefix(2), in: commands))")
        }
        let words = family.compactMap { $0.words.dropFirst().first }
        guard let second = rest.dropFirst().first, !second.hasPrefix("-") else {
            if rest.contains("--help") || rest.contains("-h") { return .help(Help.overview(of: family)) }
            throw Fault(.usage, "`\(first)`: expected one of \(words.joined(separator: ", ")) after it")
        }
        let hint = Nearest.hint(second, among: words, prefix: "\(first) ")
        throw Fault(.usage, "`\(first) \(second)`: no such command\(hint)")
    }

    /// By both words where two were meant, else by the first.
    private static func hint(for words: ArraySlice<String>, in commands: [Command]) -> String {
        let whole = Nearest.hint(words.joined(separator: " "), among: commands.map(\.name))
        if !whole.isEmpty { return whole }
        return Nearest.hint(words.first ?? "", among: commands.compactMap(\.words.first))
    }
}
