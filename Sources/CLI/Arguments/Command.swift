import CountersignAuthority
import CountersignWire

/// One command as users see it: its words, what follows them, and what it does.
package struct Command: Sendable {
    /// `["app", "add"]`.
    package var words: [String]
    package var summary: String
    var positionals: [Positional] = []
    package var options: [Option] = []
    /// More to know, shown below the options.
    var notes = ""
    /// Whether `countersign-lab` runs it, and this program only starts that one.
    var isInDevelopmentProgram = false
    package var run: @Sendable (Invocation) throws(OperationalError) -> ExitStatus

    package init(
        words: [String], summary: String, positionals: [Positional] = [], options: [Option] = [],
        notes: String = "", run: @escaping @Sendable (Invocation) throws(OperationalError) -> ExitStatus
    ) {
        (self.words, self.summary, self.positionals, self.options) = (words, summary, positionals, options)
        (self.notes, self.run) = (notes, run)
    }

    var name: String { words.joined(separator: " ") }
    /// With what every command has, and `--store` where a deployment is opened.
    var allOptions: [Option] { options + (opensDeployment ? [.store] : []) + [.help] }

    private var opensDeployment: Bool {
        options.contains { $0.name == Option.data.name && $0.kind == Option.data.kind }
            && !options.contains { $0.name == Option.store.name }
    }
}

/// What stands after the command without a name.
package struct Positional: Sendable {
    package enum Presence: Sendable {
        case required, optional
        /// This word and all that follow, also such as look like options where they stand after `--`. The
        /// last positional.
        case remaining
    }

    var name: String
    var presence: Presence

    package init(name: String, presence: Presence = .required) {
        (self.name, self.presence) = (name, presence)
    }
}

/// What is given by name.
package struct Option: Sendable {
    package enum Kind: Sendable, Equatable {
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
    /// What completion offers as the value; nil for what the placeholder says.
    var form: ValueForm?

    package init(
        name: String, letter: Character? = nil, kind: Kind, meaning: String, form: ValueForm? = nil
    ) {
        (self.name, self.letter, self.kind) = (name, letter, kind)
        (self.meaning, self.form) = (meaning, form)
    }

    package static func flag(_ name: String, meaning: String, letter: Character? = nil) -> Option {
        Option(name: name, letter: letter, kind: .flag, meaning: meaning)
    }

    package static func value(
        _ name: String, placeholder value: String, meaning: String, letter: Character? = nil
    )
        -> Option
    {
        Option(name: name, letter: letter, kind: .value(value), meaning: meaning)
    }

    package static func list(
        _ name: String, placeholder value: String, meaning: String, letter: Character? = nil
    )
        -> Option
    {
        Option(name: name, letter: letter, kind: .list(value), meaning: meaning)
    }

    /// A signature scheme, whose names completion offers.
    package static func scheme(meaning: String) -> Option {
        Option(name: "scheme", kind: .value("NAME"), meaning: meaning, form: .schemes)
    }

    /// Scopes of the admin API, which completion offers.
    static func scopes(meaning: String) -> Option {
        Option(
            name: "scope", kind: .list("SCOPE"), meaning: meaning,
            form: .text(APIScope.allCases.map(\.rawValue)))
    }

    static let help = flag("help", meaning: "show this", letter: "h")
    package static let json = flag("json", meaning: "print JSON")
    package static let data = value(
        "data", placeholder: "DIR", meaning: "the data folder (COUNTERSIGN_DATA, else .countersign)")
    static let store = value(
        "store", placeholder: "URL",
        meaning: "where accounts and sessions are kept (COUNTERSIGN_STORE, else sqlite:DATA/countersign.db)")
}

extension Command {
    enum Lookup {
        case help(String)
        case run(Command, [String])
    }

    /// Those that may stand before a command's words, with their values after them.
    static let leadingOptions = [Option.data, .store].map { "--\($0.name)" }

    /// The command whose words the arguments begin with. Options that every command has may stand before it.
    static func find(_ arguments: [String], in commands: [Command]) throws(OperationalError) -> Lookup {
        var rest = arguments[...]
        var leading: [String] = []
        while let word = rest.first, word.hasPrefix("-"), word != "--" {
            leading.append(rest.removeFirst())
            if leadingOptions.contains(word), let value = rest.popFirst() { leading.append(value) }
        }
        if leading.contains("--version") { rest = ["version"]; leading.removeAll { $0 == "--version" } }
        if rest.first == "help" {
            let words = Array(rest.dropFirst())
            if let command = commands.first(where: { $0.words == words && $0.isInDevelopmentProgram }) {
                return .run(command, ["--help"])
            }
            return .help(try Help.text(for: words, in: commands))
        }
        if rest.isEmpty, leading.contains(where: { ["--help", "-h"].contains($0) }) {
            return .help(Help.overview(of: commands))
        }
        guard let first = rest.first else {
            throw OperationalError(.usage, message: "no command; `countersign --help` lists them")
        }
        if let command = commands.first(where: { rest.starts(with: $0.words) }) {
            return .run(command, leading + rest.dropFirst(command.words.count))
        }
        let family = commands.filter { $0.words.first == first }
        if family.isEmpty {
            throw OperationalError(
                .usage, message: "`\(first)`: no such command\(hint(for: rest.prefix(2), in: commands))")
        }
        let words = family.compactMap { $0.words.dropFirst().first }
        guard let second = rest.dropFirst().first, !second.hasPrefix("-") else {
            if rest.contains("--help") || rest.contains("-h") { return .help(Help.overview(of: family)) }
            throw OperationalError(
                .usage, message: "`\(first)`: expected one of \(words.joined(separator: ", ")) after it")
        }
        let hint = SpellingSuggestion.text(for: second, among: words, prefix: "\(first) ")
        throw OperationalError(.usage, message: "`\(first) \(second)`: no such command\(hint)")
    }

    /// By both words where two were meant, else by the first.
    private static func hint(for words: ArraySlice<String>, in commands: [Command]) -> String {
        let whole = SpellingSuggestion.text(for: words.joined(separator: " "), among: commands.map(\.name))
        if !whole.isEmpty { return whole }
        return SpellingSuggestion.text(for: words.first ?? "", among: commands.compactMap(\.words.first))
    }
}

/// Help, made from the commands' own descriptions.
enum Help {
    static func overview(of commands: [Command]) -> String {
        let rows = commands.map { ($0.name, $0.summary) }
        let statuses = ExitStatus.allCases.map { "\($0.rawValue) \($0.meaning)" }
        let most = statuses.dropLast().joined(separator: ", ")
        return """
            Countersign proves that each request comes from a live version of your app, unread, unchanged \
            and once.

            usage: countersign COMMAND [options]

            \(table(rows))

            `countersign COMMAND --help` says more. `countersign --api URL --token-file F COMMAND` runs it
            on another machine (docs/operate/api.md). Exit status: \(most),
            \(statuses.last ?? "").
            """
    }

    static func text(for words: [String], in commands: [Command]) throws(OperationalError) -> String {
        if words.isEmpty { return overview(of: commands) }
        if let command = commands.first(where: { $0.words == words }) { return text(of: command) }
        let family = commands.filter { $0.words.starts(with: words) }
        guard family.isEmpty else { return overview(of: family) }
        throw OperationalError(.usage, message: "`\(words.joined(separator: " "))`: no such command")
    }

    static func text(of command: Command) -> String {
        var text =
            "\(command.summary)\n\nusage: \(usage(of: command))\n\n\(table(command.allOptions.map(row)))"
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
