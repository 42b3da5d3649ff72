import Testing

@testable import CountersignCLI
@testable import countersign_lab

/// `countersign` lists each command of `countersign-lab`, and that program runs each of them.
@Suite struct DevelopmentCommandTests {
    @Test("the program runs each command that it is started for", arguments: DevelopmentCommand.allCases)
    func isRun(_ command: DevelopmentCommand) throws {
        // By the words, as both programs find it: one of two words comes before the one that is its first.
        for commands in [DevelopmentCommand.commands, Tool.commands] {
            guard case .run(let found, let rest) = try Command.find(command.words + ["--json"], in: commands)
            else {
                Issue.record("\(command.rawValue): expected a command")
                continue
            }
            #expect(found.words == command.words && rest == ["--json"])
            #expect(found.isInDevelopmentProgram == (commands.count == Tool.commands.count))
        }
    }

    @Test("each command's help names all it takes", arguments: DevelopmentCommand.commands.map(\.name))
    func help(_ name: String) throws {
        let command = try #require(DevelopmentCommand.commands.first { $0.name == name })
        let text = Help.text(of: command)
        for option in command.allOptions { #expect(text.contains("--\(option.name)")) }
        for positional in command.positionals { #expect(text.contains(positional.name)) }
        #expect(Set(command.allOptions.map(\.name)).count == command.allOptions.count)
    }

    @Test func bothProgramsFindWhatTheyShare() {
        let names = DevelopmentCommand.commands.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isSubset(of: Tool.commands.map(\.name)))
    }
}
