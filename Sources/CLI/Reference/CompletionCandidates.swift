import CountersignSchemes
import CountersignServer

/// What may stand where a value is expected, for completion.
package enum ValueForm: Sendable {
    /// Any text; these words are offered.
    case text([String])
    case file
    case folder

    /// The name of a signature scheme.
    package static let schemes = ValueForm.text(SchemeName.allCases.map(\.rawValue))

    /// By the placeholder in help: a file, a folder, or one of the words that it lists (`on|off`).
    init(placeholder: String) {
        let words = placeholder.split(separator: "|").map(String.init)
        switch placeholder {
        case "F", "FILE": self = .file
        case "DIR": self = .folder
        case _ where words.count > 1 && words.allSatisfy { $0 == $0.lowercased() }: self = .text(words)
        default: self = .text([])
        }
    }

    init(_ kind: Setting.Kind) {
        switch kind {
        case .number: self = .text([])
        case .choice(let words), .text(let words): self = .text(words)
        case .file: self = .file
        case .folder: self = .folder
        }
    }
}

/// What can follow the words of a command line, computed from the table of commands. The shells' scripts only
/// ask for it.
struct CompletionCandidates {
    /// Paths that the shell offers besides the words.
    enum Paths: String { case none, files, folders }

    private(set) var words: [(text: String, meaning: String)] = []
    private(set) var paths = Paths.none
    /// The command that the line names.
    private(set) var command: Command?

    /// `line` has the words after the program's name; the last one is being typed and may be empty.
    init(for line: [String], in commands: [Command]) {
        let (line, isSplit) = CompletionCandidates.joined(line)
        guard let current = line.last else { return }
        var rest = Array(line.dropLast())
        while let option = rest.first, option.hasPrefix("-") {
            rest.removeFirst()
            if Command.leadingOptions.contains(option), !rest.isEmpty { rest.removeFirst() }
        }
        if rest.first == "help" { rest.removeFirst() }
        let typed = Array(rest.prefix { !$0.hasPrefix("-") })
        if !current.hasPrefix("-") { addCommands(after: typed, beginningWith: current, in: commands) }
        let matching = commands.filter { rest.starts(with: $0.words) }
        if let command = matching.max(by: { $0.words.count < $1.words.count }) {
            self.command = command
            let arguments = Array(rest.dropFirst(command.words.count))
            addArguments(of: command, after: arguments, current: current, isSplit: isSplit)
        } else if rest.isEmpty, "--help".hasPrefix(current), current.hasPrefix("-") {
            words.append(("--help", "list the commands"))
        }
    }

    /// One line for each word, with its meaning after a tab, and the paths on the last line.
    var lines: String {
        (words.map { "\($0.text)\t\($0.meaning)" } + [":\(paths.rawValue)"]).joined(separator: "\n")
    }

    /// Bash hands over `--name=value` as three words. Whether the last one was joined, so that the candidate
    /// is the value alone.
    private static func joined(_ line: [String]) -> (words: [String], isSplit: Bool) {
        var words: [String] = []
        var isSplit = false
        for word in line {
            if word == "=", let last = words.last, last.hasPrefix("--"), !last.contains("=") {
                words[words.count - 1] += "="
                isSplit = true
            } else if isSplit, let last = words.last, last.hasSuffix("=") {
                words[words.count - 1] += word
            } else {
                words.append(word)
                isSplit = false
            }
        }
        return (words, isSplit)
    }

    private mutating func addCommands(
        after typed: [String], beginningWith current: String, in commands: [Command]
    ) {
        for command in commands where command.words.count > typed.count && command.words.starts(with: typed) {
            let word = command.words[typed.count]
            guard word.hasPrefix(current), !words.contains(where: { $0.text == word }) else { continue }
            let isWhole = command.words.count == typed.count + 1
            words.append((word, isWhole ? command.summary : "commands that begin with \(word)"))
        }
    }

    private mutating func addArguments(
        of command: Command, after arguments: [String], current: String, isSplit: Bool
    ) {
        if arguments.contains("--") { return paths = .files }
        if let last = arguments.last, let option = CompletionCandidates.option(last, of: command),
            let form = option.expectedForm
        {
            return add(form, beginningWith: current, prefix: "")
        }
        if current.hasPrefix("--"), let sign = current.firstIndex(of: "=") {
            let name = String(current[..<sign])
            guard let form = CompletionCandidates.option(name, of: command)?.expectedForm else { return }
            let value = String(current[current.index(after: sign)...])
            return add(form, beginningWith: value, prefix: isSplit ? "" : "\(name)=")
        }
        if current.hasPrefix("-") {
            for option in command.allOptions where "--\(option.name)".hasPrefix(current) {
                words.append(("--\(option.name)", option.meaning))
            }
            return
        }
        addPositional(of: command, after: arguments, current: current)
    }

    private mutating func addPositional(of command: Command, after arguments: [String], current: String) {
        var count = 0
        var isValue = false
        for word in arguments {
            if isValue {
                isValue = false
            } else if word.hasPrefix("-") {
                let option = CompletionCandidates.option(word, of: command)
                isValue = option?.expectedForm != nil
            } else {
                count += 1
            }
        }
        guard let last = command.positionals.last else { return }
        let isRemaining = last.presence == .remaining
        guard count < command.positionals.count || isRemaining else { return }
        let positional = command.positionals[min(count, command.positionals.count - 1)]
        add(ValueForm(placeholder: positional.name), beginningWith: current, prefix: "")
    }

    private mutating func add(_ form: ValueForm, beginningWith current: String, prefix: String) {
        switch form {
        case .file: paths = .files
        case .folder: paths = .folders
        case .text(let texts):
            for text in texts where text.hasPrefix(current) { words.append((prefix + text, "")) }
        }
    }

    /// The option that a word names; of `-n` by its letter.
    private static func option(_ word: String, of command: Command) -> Option? {
        if word.hasPrefix("--") { return command.allOptions.first { "--\($0.name)" == word } }
        guard word.count == 2, word.hasPrefix("-") else { return nil }
        return command.allOptions.first { $0.letter == word.last }
    }
}

extension Option {
    /// Nil for a flag.
    fileprivate var expectedForm: ValueForm? {
        switch kind {
        case .flag: nil
        case .value(let placeholder), .list(let placeholder):
            form ?? ValueForm(placeholder: placeholder)
        }
    }
}
