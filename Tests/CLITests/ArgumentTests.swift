import CountersignWire
import Testing

@testable import CountersignCLI

@Suite struct ArgumentTests {
    private static let command = Command(
        words: ["make"], summary: "makes",
        positionals: [Positional(name: "A"), Positional(name: "B", presence: .optional)],
        options: [
            .value("name", placeholder: "N", meaning: "a name", letter: "n"),
            .list("set", placeholder: "K=V", meaning: "settings", letter: "s"),
            .flag("quick", meaning: "at once", letter: "q"),
        ]
    ) { _ in .success }

    @Test("what was meant")
    func good() throws {
        let arguments = try Arguments.parse(
            ["-q", "--name=x=y", "a", "-sk=1", "--set", "k=2", "-n", "z", "--", "--b"], for: Self.command)
        #expect(arguments.has("quick"))
        #expect(arguments.value("name") == "z")
        #expect(arguments.values("set") == ["k=1", "k=2"])
        #expect(arguments.positional("A") == "a")
        #expect(arguments.positional("B") == "--b")
        #expect(
            try Arguments.parse(["-", "--name", "--quick"], for: Self.command).value("name") == "--quick")
    }

    @Test(
        "wrong use, and the word that names it",
        arguments: [
            ([], "A is missing"), (["a", "b", "c"], "`c`"), (["a", "--nmae", "x"], "did you mean `--name`?"),
            (["a", "--name"], "expected N"), (["a", "--quick=1"], "takes no value"), (["a", "-x"], "-x"),
            (["a", "--"], ""), (["--zzzzzzzz"], "no such option"),
        ])
    func bad(_ row: (words: [String], named: String)) throws {
        guard !row.named.isEmpty else {
            _ = try Arguments.parse(row.words, for: Self.command)
            return
        }
        let fault = #expect(throws: OperationalError.self) {
            try Arguments.parse(row.words, for: Self.command)
        }
        #expect(fault?.kind == .usage)
        #expect(fault?.message.contains(row.named) == true, "\(fault?.message ?? "")")
        #expect(fault?.message.contains("did you mean") == row.named.contains("did you mean"))
    }

    @Test("finding the command")
    func finding() throws {
        func found(_ words: [String]) throws -> String {
            switch try Command.find(words, in: Tool.commands) {
            case .help(let text): "help: \(text.prefix(11))"
            case .run(let command, let rest): ([command.name] + rest).joined(separator: " ")
            }
        }
        #expect(try found(["app", "add", "x"]) == "app add x")
        #expect(try found(["--data", "d", "app", "list"]) == "app list --data d")
        #expect(try found(["--data=d", "version"]) == "version --data=d")
        #expect(try found(["--help"]).hasPrefix("help"))
        #expect(try found(["help", "release", "add"]).hasPrefix("help"))
        #expect(try found(["release", "--help"]).hasPrefix("help"))
        for words in [[], ["ap"], ["app"], ["app", "ad"], ["help", "x"]] {
            #expect(throws: OperationalError.self, "\(words)") { try found(words) }
        }
        let fault = #expect(throws: OperationalError.self) { try found(["requst"]) }
        #expect(fault?.message.contains("`request`") == true)
        for words in [["app", "polcy"], ["ap", "policy", "shop"]] {
            let fault = #expect(throws: OperationalError.self) { try found(words) }
            #expect(fault?.message.contains("did you mean `app policy`?") == true)
        }
        // Two swapped letters are one mistake, and a command of the word's length comes first.
        let swapped = #expect(throws: OperationalError.self) { try found(["route", "tset"]) }
        #expect(swapped?.message.contains("did you mean `route test`?") == true)
    }

    @Test("each command's help names all it takes", arguments: Tool.commands.map(\.name))
    func help(_ name: String) throws {
        let command = try #require(Tool.commands.first { $0.name == name })
        let text = Help.text(of: command)
        for option in command.allOptions { #expect(text.contains("--\(option.name)")) }
        for positional in command.positionals { #expect(text.contains(positional.name)) }
        #expect(Set(command.allOptions.map(\.name)).count == command.allOptions.count)
        let letters = command.allOptions.compactMap(\.letter)
        #expect(Set(letters).count == letters.count)
    }
}
