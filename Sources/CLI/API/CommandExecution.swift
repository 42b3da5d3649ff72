import CLinux
import CountersignAuthority
import CountersignSQL
import CountersignServer
import CountersignWire
import Glibc

/// The server in which a command runs, and the party that it runs for.
final class CommandHost: Sendable {
    /// For how long a deployment that a command has opened is used.
    enum Opening: Sendable {
        case perCommand
        /// For all commands until ``end()``. They only read: each sees what others have changed before it.
        case shared
    }

    let configuration: Configuration
    let actor: AuditActor
    /// Those that the server keeps; nil for commands that show none.
    let refusals: RecentRefusals?
    private let opening: Opening
    /// The deployments that commands have opened.
    private let opened = Locked<[Deployment]>([])

    init(
        _ configuration: Configuration, actor: AuditActor, opening: Opening = .perCommand,
        refusals: RecentRefusals? = nil
    ) {
        self.configuration = configuration
        self.actor = actor
        self.refusals = refusals
        self.opening = opening
    }

    /// Opens the deployment as a command's own process does, so that a change is acknowledged once every node
    /// follows it. Skips the check of every page of the store, which the server made at its start.
    func open(environment: [String: String]) throws(OperationalError) -> Deployment {
        if opening == .shared, let deployment = opened.with({ $0.first }) { return deployment }
        let deployment = try configuration.openDeployment(
            inspecting: .header, absence: .fail, environment: environment, acknowledging: .followed,
            actor: actor, policyFiles: .refused)
        opened.with { $0.append(deployment) }
        return deployment
    }

    /// Call when a command has ended.
    func close() { if opening == .perCommand { end() } }

    /// Closes what is open.
    func end() {
        for deployment in opened.with({ $0 }) { deployment.store.close() }
        opened.with { $0 = [] }
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
        let input = try MemoryStream(holding: standardInput)
        let (output, errors) = (try MemoryStream(), try MemoryStream())
        let arguments = try Arguments.parse(words, for: command)
        let console = Console(input: input.descriptor, output: output.descriptor, errors: errors.descriptor)
        defer { host.close() }
        let status = try command.run(
            Invocation(arguments: arguments, console: console, environment: environment, host: host))
        return Result(
            status: status, output: try output.contents(limit: CommandExecution.mostOutput),
            notes: String(decoding: try errors.contents(limit: 1 << 20), as: UTF8.self))
    }
}

/// A file in memory without a name, which stands for a standard stream.
private final class MemoryStream {
    let descriptor: Int32

    init(holding bytes: [UInt8] = []) throws(OperationalError) {
        descriptor = memfd_create("countersign-stream", cs_memfd_cloexec)
        guard descriptor >= 0 else { throw Errno.error("memory for a command's streams") }
        guard bytes.isEmpty || Console.writeAll(bytes, to: descriptor), lseek(descriptor, 0, SEEK_SET) == 0
        else {
            throw Errno.error("memory for a command's input")
        }
    }

    deinit { close(descriptor) }

    func contents(limit: Int) throws(OperationalError) -> [UInt8] {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Errno.error("a command's output") }
        return try Console.readAll(descriptor, limit: limit, name: "a command's output")
    }
}
