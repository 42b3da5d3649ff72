import CountersignWire

/// The words after a command, sorted into what the command asked for.
package struct Arguments: Sendable, Equatable {
    private var values: [String: [String]] = [:]
    private var positionals: [String: String] = [:]
    /// Those of the positional that takes all that remain.
    package private(set) var remaining: [String] = []

    package func has(_ name: String) -> Bool { values[name] != nil }

    /// The options that are given.
    var optionNames: [String] { values.keys.sorted() }

    /// The last value given.
    package func value(_ name: String) -> String? { values[name]?.last }

    package func values(_ name: String) -> [String] { values[name] ?? [] }

    package func positional(_ name: String) -> String? { positionals[name] }

    /// `--name value`, `--name=value`, `-n value`, `-nvalue`; after `--` nothing is an option. Everything
    /// that the command does not know is an ``OperationalError`` of usage.
    static func parse(_ words: [String], for command: Command) throws(OperationalError) -> Arguments {
        var arguments = Arguments()
        var rest = words[...]
        var free: [String] = []
        while let word = rest.popFirst() {
            if word == "--" {
                free += rest
                break
            }
            guard word.hasPrefix("-"), word != "-" else {
                free.append(word)
                continue
            }
            let (option, attached) = try option(in: word, of: command)
            switch (option.kind, attached) {
            case (.flag, nil): arguments.values[option.name, default: []].append("")
            case (.flag, .some): throw OperationalError(.usage, message: "--\(option.name) takes no value")
            case (.value(let what), nil), (.list(let what), nil):
                guard let value = rest.popFirst() else {
                    throw OperationalError(.usage, message: "--\(option.name): expected \(what) after it")
                }
                arguments.values[option.name, default: []].append(value)
            case (.value, let value?), (.list, let value?):
                arguments.values[option.name, default: []].append(value)
            }
        }
        if arguments.has("help") { return arguments }
        try arguments.place(free, for: command)
        return arguments
    }

    private static func option(in word: String, of command: Command) throws(OperationalError) -> (
        Option, attached: String?
    ) {
        if word.hasPrefix("--") {
            let parts = word.dropFirst(2).split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let option = command.allOptions.first(where: { $0.name == name }) else {
                let hint = SpellingSuggestion.text(
                    for: name, among: command.allOptions.map(\.name), prefix: "--")
                throw OperationalError(
                    .usage, message: "--\(name): `countersign \(command.name)` has no such option\(hint)")
            }
            return (option, parts.count > 1 ? String(parts[1]) : nil)
        }
        let letter = word[word.index(after: word.startIndex)]
        guard let option = command.allOptions.first(where: { $0.letter == letter }) else {
            throw OperationalError(
                .usage, message: "-\(letter): `countersign \(command.name)` has no such option")
        }
        let attached = String(word.dropFirst(2))
        return (option, attached.isEmpty ? nil : attached)
    }

    private mutating func place(_ free: [String], for command: Command) throws(OperationalError) {
        for (index, positional) in command.positionals.enumerated() {
            if positional.presence == .remaining {
                remaining = Array(free.dropFirst(index))
                return
            }
            if index < free.count {
                positionals[positional.name] = free[index]
            } else if positional.presence == .required {
                throw OperationalError(
                    .usage, message: "\(positional.name) is missing: \(Help.usage(of: command))")
            }
        }
        guard free.count <= command.positionals.count else {
            throw OperationalError(
                .usage,
                message:
                    "`\(free[command.positionals.count])`: more than was expected: \(Help.usage(of: command))"
            )
        }
    }
}

/// What a misspelt word was probably meant to be.
package enum SpellingSuggestion {
    package static func text(for word: String, among known: [String], prefix: String = "") -> String {
        // Of names at the same distance, the one that is as long as the word: swapped and wrong letters are
        // more frequent than missing ones.
        let ranked = Set(known).map { name in
            (
                distance: distance(from: word, to: name),
                growth: abs(word.utf8.count - name.utf8.count), name: name
            )
        }.sorted { ($0.distance, $0.growth, $0.name) < ($1.distance, $1.growth, $1.name) }
        guard let best = ranked.first, best.distance <= max(2, word.count / 3),
            best.distance < word.count
        else { return "" }
        return "; did you mean `\(prefix)\(best.name)`?"
    }

    /// How many bytes to insert, remove, replace or swap with their neighbour: the restricted
    /// Damerau–Levenshtein distance, by rows. Words from a command line are short; the limit bounds the work
    /// for others.
    private static func distance(from left: String, to right: String) -> Int {
        let left = Array(left.utf8.prefix(64))
        let right = Array(right.utf8.prefix(64))
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var row = [i + 1]
            for (j, b) in right.enumerated() {
                var least = min(last[j] + (a == b ? 0 : 1), last[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, a == right[j - 1], b == left[i - 1] {
                    least = min(least, beforeLast[j - 1] + 1)
                }
                row.append(least)
            }
            (beforeLast, last) = (last, row)
        }
        return last[right.count]
    }
}
