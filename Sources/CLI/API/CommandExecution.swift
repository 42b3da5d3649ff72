import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignServer
import CountersignWire

/// The deployment as the administrators of a running server use it. The first call opens it; it stays open.
final class AdministeredDeployment: Sendable {
    private let environment: [String: String]
    private let opened = Locked<Deployment?>(nil)

    init(environment: [String: String]) { self.environment = environment }

    deinit { opened.with { $0?.store.close() } }

    /// Changes are recorded as `actor`'s, and acknowledged once every node follows them. The server has
    /// checked every page of the store at its start.
    func open(
        in configuration: Configuration, actor: AuditActor, clock: TrustedClock
    ) throws(OperationalError) -> Deployment {
        if let deployment = opened.with({ $0 }) { return deployment.acting(as: actor) }
        let deployment = try configuration.openDeployment(
            inspecting: .header, absence: .fail, environment: environment, acknowledging: .followed,
            clock: .watched(clock), policyFiles: .refused)
        let kept = opened.with { opened in
            if let earlier = opened { return earlier }
            opened = deployment
            return deployment
        }
        // Another thread may have been faster.
        if kept !== deployment { deployment.store.close() }
        return kept.acting(as: actor)
    }
}

/// The server in which a command runs, and the party that it runs for.
struct CommandHost: Sendable {
    let configuration: Configuration
    let actor: AuditActor
    let scopes: Set<APIScope>
    let deployment: AdministeredDeployment
    /// The server's.
    let clock: TrustedClock
    /// Those that the server keeps; nil for commands that show none.
    let refusals: RecentRefusals?

    var administration: Administration {
        get throws(OperationalError) {
            Administration(deployment: try open(), scopes: scopes, now: clock.estimate)
        }
    }

    func open() throws(OperationalError) -> Deployment {
        try deployment.open(in: configuration, actor: actor, clock: clock)
    }
}

/// Runs one command within the server, with its streams in memory.
struct CommandExecution: Sendable {
    struct Result: Sendable {
        let status: ExitStatus
        let output: [UInt8]
        /// What the command says about its result.
        let notes: String
    }

    private static let mostOutput = 16 << 20

    let command: Command
    let words: [String]
    let standardInput: [UInt8]
    let host: CommandHost
    let environment: Environment

    /// Runs the command.
    var outcome: Swift.Result<Result, OperationalError> {
        do throws(OperationalError) {
            return .success(try run())
        } catch {
            return .failure(error)
        }
    }

    private func run() throws(OperationalError) -> Result {
        let output = MemoryStream("a command's output", limit: CommandExecution.mostOutput)
        let errors = MemoryStream("a command's notes", limit: 1 << 20)
        let arguments = try Arguments.parse(words, for: command)
        let console = Console(input: standardInput, output: output, errors: errors)
        let status = try command.run(
            Invocation(arguments: arguments, console: console, environment: environment, host: host))
        return Result(
            status: status, output: output.bytes, notes: String(decoding: errors.bytes, as: UTF8.self))
    }
}
