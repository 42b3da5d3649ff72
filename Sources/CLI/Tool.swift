import CountersignSeal
import CountersignServer
import CountersignWire
import Glibc

/// What the process says to the shell.
package enum ExitStatus: Int32, Sendable, CaseIterable {
    case success = 0
    case failed = 1
    case usage = 2
    case unreachable = 3

    /// As help and manual pages state it.
    var meaning: String {
        switch self {
        case .success: "success"
        case .failed: "failed or refused"
        case .usage: "used wrongly"
        case .unreachable: "the server or a store could not be reached"
        }
    }
}

/// The program: finds the command, runs it, and turns an ``OperationalError`` into one line and an exit
/// status.
package enum Tool {
    package static let commands: [Command] =
        [
            .serve, .reload, .restart, .appAdd, .appList, .appPolicy, .appMessages,
            .releaseAdd, .releaseList, .releasePolicy, .releaseRotate, .releaseRetire, .releaseImpact,
            .routeSet, .routeList, .routeRemove, .routeTest, .maintenanceOn, .maintenanceOff,
            .maintenanceStatus,
            .accountAdd, .accountList, .accountShow, .accountLock, .accountUnlock, .accountRemove,
            .accountUserID, .accountReset, .accountVerify, .accountCode, .accountRedeem,
            .accountImport, .accountDevices, .accountForgetDevice,
            .accountExport, .accountErase,
            .sessionList, .sessionRevoke, .nodesChange, .nodesRejectReport, .nodes,
            .meter, .refusals, .replayStatus, .replayConfirmClock, .drillStore, .drillReplay, .auditList,
            .auditVerify,
            .auditAccept, .tokenAdd, .tokenList, .tokenRevoke, .console, .webhookAdd,
            .webhookList, .webhookRemove, .webhookTest, .webhookDead, .webhookRetry, .webhookKey, .openAPI,
            .assertionKeys,
            .assertionRotate, .answerKeyShow, .answerKeyRotate, .registrationKeyRotate, .rotateMasterKey,
            .migrate, .backupKey, .backupLast, .backup, .restore, .doctor,
            .pinsKeygen, .pinsSign,
            .pinsShow, .pinsList, .pinsPublish, .profileAdd, .signUp, .logIn,
            .logOut, .status, .sessions, .password, .request, .uploadTicket, .sign,
            .verify, .explain, .labLast,
        ] + DevelopmentCommand.allCases.map(Command.init(startingProgramFor:)) + [.settings] + common

    /// Those of both programs, `countersign` and `countersign-lab`.
    package static let common: [Command] = [.manual, .completion, .version]

    /// Runs the command that the process's arguments name, and ends the process with its exit status.
    package static func runProcess(commands: [Command] = Tool.commands) -> Never {
        // Every command, for the client's hold passwords and a session's root.
        ProcessMemory.keepPrivate()
        let status = run(Array(CommandLine.arguments.dropFirst()), commands: commands).rawValue
        fflush(nil)
        // Threads that still run must not meet libraries that are being taken down.
        _exit(status)
    }

    static func run(
        _ arguments: [String], commands: [Command] = Tool.commands, console: Console = Console(),
        environment: Environment = .process
    ) -> ExitStatus {
        do {
            var arguments = arguments
            let remote = try RemoteServer(taking: &arguments)
            switch try Command.find(arguments, in: commands) {
            case .help(let text):
                try console.print(text)
                return .success
            case .run(let command, let rest):
                // Another program knows the options.
                let parsed =
                    command.isInDevelopmentProgram ? Arguments() : try Arguments.parse(rest, for: command)
                if parsed.has("help") {
                    try console.print(Help.text(of: command))
                    return .success
                }
                if let remote { return try remote.run(command, arguments: rest, console: console) }
                return try command.run(
                    Invocation(
                        arguments: parsed, console: console, environment: environment, commands: commands))
            }
        } catch {
            console.reportError(error.message)
            switch error.kind {
            case .usage: return .usage
            case .failed, .missing, .forbidden: return .failed
            case .unreachable: return .unreachable
            }
        }
    }
}

extension Command {
    static let version = Command(
        words: ["version"], summary: "say which version this is", options: [.json]
    ) { (run) throws(OperationalError) in
        try run.print(["version": .string(Product.version)]) { "countersign \(Product.version)" }
        return .success
    }
}
