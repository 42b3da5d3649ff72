import CountersignServer
import CountersignWire
import Glibc

/// The commands of `countersign-lab`, the program for development. `countersign` lists them, and starts that
/// program. One of two words comes before the one that is its first word.
package enum DevelopmentCommand: String, CaseIterable, Sendable {
    case selfTest = "selftest"
    case conformance
    case benchStore = "bench store"
    case benchReplay = "bench replay"
    case benchLogin = "bench login"
    case benchVerdict = "bench verdict"
    case benchFill = "bench fill"
    case benchClients = "bench clients"
    case bench
    case lab

    package var words: [String] { rawValue.split(separator: " ").map(String.init) }

    package var summary: String {
        switch self {
        case .selfTest: "attack a deployment of your own: vectors, replays, changes, wrong times"
        case .conformance: "drive a port of the client through every exchange, and say what it does wrong"
        case .benchStore: "measure the store: durable writes a second, sessions read at a start"
        case .benchReplay: "measure the replay table: how long an insertion takes while it grows"
        case .benchLogin: "measure what OPAQUE logins cost the server, and how many it does in a second"
        case .benchVerdict: "judge one kind of request over and over, for a profiler"
        case .benchFill: "make a deployment with so many sessions, for load from outside"
        case .benchClients: "compute what clients send to register, sign in and renew a session"
        case .bench: "measure a verdict of each scheme, in process"
        case .lab: "attack every scheme, live, and show what held"
        }
    }
}

extension Command {
    /// A command of `countersign-lab`.
    package init(
        _ command: DevelopmentCommand, positionals: [Positional] = [], options: [Option] = [],
        notes: String = "", run: @escaping @Sendable (Invocation) throws(OperationalError) -> ExitStatus
    ) {
        self.init(
            words: command.words, summary: command.summary, positionals: positionals, options: options,
            notes: notes, run: run)
    }

    /// The entry of `countersign`, which starts the program beside it.
    init(startingProgramFor command: DevelopmentCommand) {
        self.init(
            words: command.words, summary: "\(command.summary) (\(DevelopmentProgram.name))",
            notes: """
                The program \(DevelopmentProgram.name) runs this command, and its help lists the options.
                `countersign` starts the one in its own folder; the package \(DevelopmentProgram.name) has it.
                """
        ) { (run) throws(OperationalError) in
            let failure = DevelopmentProgram.replaceProcess()
            guard DevelopmentProgram.isAskedForHelp else { throw failure }
            try run.console.print(Help.text(of: Command(startingProgramFor: command)))
            return .success
        }
        isInDevelopmentProgram = true
    }
}

/// The program for development, in the folder of this program.
enum DevelopmentProgram {
    static let name = "countersign-lab"

    static var isAskedForHelp: Bool {
        CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains {
            ["help", "--help", "-h"].contains($0)
        }
    }

    /// Runs it in the place of this process, with the same arguments and streams, so that its exit status is
    /// this process's. Returns only if it cannot be run.
    static func replaceProcess() -> OperationalError {
        guard let path = ServerProgram.beside(name) else {
            return OperationalError(.failed, message: "\(name): cannot tell which folder this program is in")
        }
        // The bytes that this process got, which need not be UTF-8.
        execv(path, CommandLine.unsafeArgv)
        guard errno == ENOENT else { return Errno.error("\(path): cannot be run") }
        return OperationalError(
            .failed,
            message: "\(path): no such file; the package \(name) contains it, and this command needs it")
    }
}
