import Countersign
import Foundation

/// The sample app without a screen: the same model, driven by commands on standard input.
@main
@MainActor
struct NotesCommand {
    static func main() async {
        do {
            let options = try CommandOptions(Array(CommandLine.arguments.dropFirst()))
            guard !options.wantsHelp else { return print(CommandOptions.help) }
            try await NotesCommand(options).run()
        } catch {
            FileHandle.standardError.write(Data("notes: \(error)\n".utf8))
            exit(error is UsageError ? 2 : 1)
        }
    }

    private let model: NotesModel
    private let report: StateReport
    private let terminal = Terminal()

    init(_ options: CommandOptions) throws {
        let terminal = terminal
        let client = try NotesSettings(contentsOf: URL(fileURLWithPath: options.settings)).makeClient(
            vault: options.vaultFolder.map { .folder($0) }
                ?? .platform { await terminal.secret("Passphrase for the session on this machine: ") },
            device: DeviceDescription(.desktop, name: options.device),
            presence: options.isLocked
                ? .platform { reason in
                    await terminal.secret("\(reason). The password of your account on this machine: ")
                }
                : nil)
        model = NotesModel(client: client)
        report = StateReport(format: options.format)
        model.onChange = { [report] in report.show($0) }
    }

    /// Until standard input ends, or `quit`.
    private func run() async {
        let following = Task { await model.run() }
        defer { following.cancel() }
        while let line = await nextLine(), line != "quit" {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            await carryOut(words.first ?? "help", words.count > 1 ? words[1] : "")
        }
    }

    private func nextLine() async -> String? {
        await report.waitUntilIdle()
        return await terminal.line("> ")
    }

    private func carryOut(_ command: String, _ argument: String) async {
        switch command {
        case "signup": await withPassword { await model.signUp(name: argument, password: $0) }
        case "login": await withPassword { await model.logIn(name: argument, password: $0) }
        case "unlock": await model.unlock()
        case "add": await model.add(argument)
        case "refresh": await model.refresh()
        case "logout": await model.logOut()
        case "continue": model.continueDespiteUpdate()
        case "retry": await model.retry()
        default: print(CommandOptions.commands)
        }
    }

    private func withPassword(_ action: (String) async -> Void) async {
        guard let password = await terminal.secret("Password: ") else { return }
        await action(password)
    }
}
