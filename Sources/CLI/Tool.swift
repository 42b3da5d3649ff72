import CountersignServer
import CountersignWire
import Glibc

/// What the process says to the shell.
enum ExitStatus: Int32, Sendable, CaseIterable {
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
enum Tool {
    static let commands: [Command] = [
        .serve, .reload, .restart, .appAdd, .appList, .appPolicy, .appMessages,
        .releaseAdd, .releaseList, .releasePolicy, .releaseRotate, .releaseRetire, .releaseImpact,
        .routeSet, .routeList, .routeRemove, .routeTest, .maintenanceOn, .maintenanceOff,
        .maintenanceStatus,
        .accountAdd, .accountList, .accountShow, .accountLock, .accountUnlock, .accountRemove,
        .accountUserID, .accountReset, .accountVerify, .accountCode, .accountRedeem,
        .accountImport, .accountDevices, .accountForgetDevice,
        .accountExport, .accountErase,
        .sessionList, .sessionRevoke, .nodes,
        .meter, .replayStatus, .replayConfirmClock, .drillStore, .drillReplay, .auditList, .auditVerify,
        .auditAccept, .tokenAdd, .tokenList, .tokenRevoke, .console, .webhookAdd,
        .webhookList, .webhookRemove, .webhookTest, .webhookDead, .webhookRetry, .webhookKey, .openAPI,
        .assertionKeys,
        .assertionRotate, .answerKeyShow, .answerKeyRotate, .registrationKeyRotate, .rotateMasterKey,
        .migrate, .backupKey, .backupLast, .backup, .restore, .doctor,
        .pinsKeygen, .pinsSign,
        .pinsShow, .pinsList, .pinsPublish, .profileAdd, .signUp, .logIn,
        .logOut, .status, .sessions, .password, .request, .uploadTicket, .sign,
        .verify, .explain, .selfTest, .conformance, .benchStore, .benchReplay, .benchLogin, .benchVerdict,
        .benchFill, .benchClients, .bench, .labLast, .lab, .settings, .manual, .completion, .version,
    ]

    static func run(_ arguments: [String], console: Console = Console(), environment: Environment = .process)
        -> ExitStatus
    {
        do {
            var arguments = arguments
            let remote = try RemoteServer(taking: &arguments)
            switch try Command.find(arguments, in: commands) {
            case .help(let text):
                try console.print(text)
                return .success
            case .run(let command, let rest):
                let parsed = try Arguments.parse(rest, for: command)
                if parsed.has("help") {
                    try console.print(Help.text(of: command))
                    return .success
                }
                if let remote { return try remote.run(command, arguments: rest, console: console) }
                return try command.run(
                    Invocation(arguments: parsed, console: console, environment: environment))
            }
        } catch {
            console.reportError(error.message)
            switch error.kind {
            case .usage: return .usage
            case .failed, .missing: return .failed
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
