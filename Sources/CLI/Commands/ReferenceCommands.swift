import CountersignServer
import CountersignWire

extension Command {
    static let completion = Command(
        words: ["completion"], summary: "print the script by which a shell completes command lines",
        positionals: [
            Positional(name: "bash|zsh|fish"), Positional(name: "WORD", presence: .remaining),
        ],
        notes: """
              bash: source <(countersign completion bash), in ~/.bashrc
              zsh: countersign completion zsh > DIR/_countersign, where DIR is a folder of $fpath
              fish: countersign completion fish > ~/.config/fish/completions/countersign.fish

            With the words of a line after --, the last one unfinished, it prints what that word may be, one a
            line, and then :none, :files or :folders. The scripts ask for this at each completion.
            """
    ) { (run) throws(OperationalError) in
        let shell = try run.required("bash|zsh|fish")
        guard let script = CompletionScript(rawValue: shell) else {
            throw OperationalError(.usage, message: "`\(shell)`: expected bash, zsh or fish")
        }
        if run.arguments.remaining.isEmpty {
            try run.console.print(painted: script.text)
        } else {
            let found = CompletionCandidates(for: run.arguments.remaining, in: run.commands)
            // That program knows the options. Without it, the words of commands remain.
            if found.command?.isInDevelopmentProgram == true { _ = DevelopmentProgram.replaceProcess() }
            try run.console.print(painted: found.lines)
        }
        return .success
    }

    static let manual = Command(
        words: ["man"], summary: "print the manual page of a command, or the one that lists all",
        positionals: [
            Positional(name: "COMMAND", presence: .optional),
            Positional(name: "SUBCOMMAND", presence: .optional),
        ],
        notes: """
            The page is in the language of man(7): `countersign man serve | man -l -`. A package may keep it
            as countersign-serve.1.
            """
    ) { (run) throws(OperationalError) in
        let words = ["COMMAND", "SUBCOMMAND"].compactMap { run.arguments.positional($0) }
        if words.isEmpty {
            try run.console.print(painted: ManualPage(of: run.commands).text)
            return .success
        }
        guard let command = run.commands.first(where: { $0.words == words }) else {
            let name = words.joined(separator: " ")
            let hint = SpellingSuggestion.text(for: name, among: run.commands.map(\.name))
            throw OperationalError(.usage, message: "`\(name)`: no such command\(hint)")
        }
        if command.isInDevelopmentProgram { _ = DevelopmentProgram.replaceProcess() }
        try run.console.print(painted: ManualPage(of: command).text)
        return .success
    }

    static let settings = Command(
        words: ["settings"], summary: "list the settings of serve with defaults, units and effect",
        options: [.json],
        notes: """
            `serve --print-config` prints the values that result from options, environment and settings file.
            """
    ) { (run) throws(OperationalError) in
        try run.print(.array(Setting.all.map(\.json))) {
            Setting.all.map { setting in
                """
                \(setting.flag) \(setting.value)
                    \(setting.meaning)
                    expected: \(setting.expected)
                    \(setting.facts)
                """
            }.joined(separator: "\n")
        }
        return .success
    }
}

extension Setting {
    fileprivate var json: JSONValue {
        [
            "name": .string(name), "option": .string(flag), "variable": .string(variable),
            "key": .string(key), "value": .string(value), "meaning": .string(meaning),
            "expected": .string(expected), "default": fallback.isEmpty ? .null : .string(fallback),
            "unit": unit.isEmpty ? .null : .string(unit), "applied_by": .string(effectText),
            "same_for": .string(scope.rawValue),
        ]
    }
}
