import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignWire

/// Serves `/api/` of the admin listener: finds the operation of a request, checks its token and its values,
/// and runs the operation's command on a thread of its own, one at a time. Tokens take turns. Source:
/// docs/decisions/0083-admin-api.md.
final class AdminAPIService: AdminAPI {
    private let environment: Environment
    private let deployment: AdministeredDeployment
    private let pool: WorkPool
    /// For commands that read much and may take seconds, so that no other command waits for them.
    private let slowPool: WorkPool
    private let tokens = APITokenCheck()
    private let kept = KeptAnswerTable()
    /// How many calls of each token wait or run, by its id.
    private let calls = Locked<[String: Int]>([:])
    /// How many calls of each token wait for an element of a list, by its id.
    private let followers = Locked<[String: Int]>([:])
    private static let mostFollowersOfToken = 4
    private static let mostFollowers = 16
    /// Half of the queue: a program whose own callers are many must not keep the operators out.
    private static let mostCallsOfToken = 16

    /// `pool` has one thread: commands are written for a process of their own.
    init(
        environment: Environment, deployment: AdministeredDeployment, pool: WorkPool
    ) throws(OperationalError) {
        self.environment = environment
        self.deployment = deployment
        self.pool = pool
        slowPool = try WorkPool(
            WorkPool.Bounds(workers: 1, queue: 32, patience: 10_000), for: .administration)
    }

    /// Whether the command runs beside the others. It only reads.
    static func isSlow(_ command: Command) -> Bool {
        [Command.auditVerify, .accountExport].contains { $0.words == command.words }
    }

    func answer(
        to exchange: any Exchange, in configuration: Configuration, figures: ServerFigures
    ) async -> (response: ServerResponse, caller: String?) {
        let admission = admit(exchange.request, configuration: configuration, figures: figures)
        if admission.caller != nil { exchange.recordProof(.release) }
        switch admission {
        case .answered(let response, let caller): return (response, caller?.text)
        case .commands(let caller): return (await runRemotely(exchange, for: caller), caller.text)
        case .operation(let call, let caller):
            return (await answer(call, on: exchange, for: caller), caller.text)
        }
    }

    /// The party that calls, and where its commands run.
    private final class Caller: Sendable {
        let token: APIToken
        let host: CommandHost

        /// For the log.
        var text: String { "token \(token.name) (\(token.id))" }

        init(token: APIToken, host: CommandHost) { (self.token, self.host) = (token, host) }
    }

    private enum Admission {
        /// `caller` is nil if no valid token was presented.
        case answered(ServerResponse, caller: Caller?)
        case operation(APICall, Caller)
        /// A command line of another machine.
        case commands(Caller)

        var caller: Caller? {
            switch self {
            case .answered(_, let caller): caller
            case .operation(_, let caller), .commands(let caller): caller
            }
        }
    }

    /// What the head allows, before a body is read.
    private func admit(
        _ request: Request, configuration: Configuration, figures: ServerFigures
    ) -> Admission {
        var caller: Caller?
        do throws(APIProblem) {
            try APIRouter.checkHost(of: request, configuration: configuration)
            let path = request.head.span.extracting(request.path.range).text
            if path == "/api/openapi.json" {
                return .answered(try APIRouter.document(for: request), caller: nil)
            }
            guard path.hasPrefix("\(APIOperation.prefix)/") else { throw APIRouter.noPath }
            let token = try tokens.token(
                of: request, configuration: configuration, clock: figures.clock)
            let known = Caller(
                token: token,
                host: CommandHost(
                    configuration: configuration, actor: .token(id: token.id, name: token.name),
                    scopes: token.scopes, deployment: deployment, clock: figures.clock,
                    refusals: figures.refusals))
            caller = known
            let segments = try APIRouter.segments(of: path.dropFirst(APIOperation.prefix.utf8.count))
            if segments == ["commands"] {
                guard request.matches(request.method, text: "POST") else {
                    throw APIRouter.otherMethod(allowed: ["POST"])
                }
                return .commands(known)
            }
            let call = try APIRouter.call(at: segments, for: request)
            let operation = call.operation
            guard operation.isAllowed(by: token.scopes) else {
                throw APIProblem(
                    403, code: "scope-missing",
                    detail: "token \(token.name): \(operation.id) needs the scope \(operation.scopes())"
                )
            }
            return .operation(call, known)
        } catch {
            return .answered(error.response, caller: caller)
        }
    }

    private func answer(
        _ call: APICall, on exchange: any Exchange, for caller: Caller
    ) async -> ServerResponse {
        let body: [UInt8]
        switch await AdminAPIService.body(of: exchange) {
        case .success(let read): body = read
        case .failure(let problem): return problem.response
        }
        switch prepare(call, request: exchange.request, body: body, caller: caller) {
        case .success(let job) where job.values.patience > 0:
            return await follow(job, for: caller)
        case .success(let job):
            return await perform(job.call.operation.command, for: caller) { job.run() }
        case .failure(let problem): return problem.response
        }
    }

    private func prepare(
        _ call: APICall, request: Request, body: [UInt8], caller: Caller
    ) -> Result<APIJob, APIProblem> {
        let operation = call.operation
        do throws(APIProblem) {
            if !body.isEmpty, operation.bodySchema != nil { try APIRouter.checkType(of: request) }
            let query = request.query.map { request.head.span.extracting($0.range).text }
            let values = try operation.values(path: call.values, query: query, body: body)
            let path = request.head.span.extracting(request.path.range).text
            var keyed: KeptAnswers.Call?
            if operation.method == .post, let key = try APIRouter.idempotencyKey(of: request) {
                keyed = KeptAnswers.Call(key: key, token: caller.token.id, path: path, body: body)
            }
            return .success(
                APIJob(
                    call: call, values: values, keyed: keyed,
                    tag: try APIRouter.matchedTag(of: request, by: operation),
                    kept: kept, host: caller.host, environment: environment))
        } catch {
            return .failure(error)
        }
    }

    // MARK: Running

    /// Runs the work on the one thread of a pool, if the token is still one when its turn comes. What a job
    /// looks at does not change before it is done.
    private func perform(
        _ command: Command, for caller: Caller, work: @escaping @Sendable () -> ServerResponse
    ) async -> ServerResponse {
        let tokens = tokens
        let id = caller.token.id
        guard calls.with({ AdminAPIService.begin(id, in: &$0, most: AdminAPIService.mostCallsOfToken) })
        else { return AdminAPIService.busy.response }
        defer { calls.with { AdminAPIService.end(id, in: &$0) } }
        do {
            let pool = AdminAPIService.isSlow(command) ? slowPool : pool
            let response = try await pool.run(within: APIProblem.mostCommandMilliseconds, for: id) {
                guard tokens.isCurrent(caller.token, for: caller.host) else {
                    return APITokenCheck.unauthorized.response
                }
                return work()
            }
            return response ?? APIProblem.late.response
        } catch {
            return AdminAPIService.busy.response
        }
    }

    /// Runs the job each second until its list has an element or the time is over. The pool's thread is free
    /// in between. A server that ends does not wait for the connections of its admin listener.
    private func follow(_ job: APIJob, for caller: Caller) async -> ServerResponse {
        let id = caller.token.id
        let isAdmitted = followers.with { followers in
            followers.values.reduce(0, +) < AdminAPIService.mostFollowers
                && AdminAPIService.begin(id, in: &followers, most: AdminAPIService.mostFollowersOfToken)
        }
        guard isAdmitted else {
            return APIProblem(
                503, code: "unavailable",
                detail:
                    "wait: expected at most \(AdminAPIService.mostFollowersOfToken) calls of a token that "
                    + "wait, and \(AdminAPIService.mostFollowers) in all"
            ).response
        }
        defer { followers.with { AdminAPIService.end(id, in: &$0) } }
        let end = EventLoop.monotonicSeconds() + Int64(job.values.patience)
        while true {
            let response = await perform(job.call.operation.command, for: caller) { job.run() }
            guard APIJob.isEmptyList(response), EventLoop.monotonicSeconds() < end else {
                return response
            }
            do { try await Task.sleep(nanoseconds: 1_000_000_000) } catch { return response }
        }
    }

    private static let busy = APIProblem(
        503, code: "unavailable", detail: "too many calls wait; try again later")

    private static func begin(_ id: String, in calls: inout [String: Int], most: Int) -> Bool {
        guard calls[id, default: 0] < most else { return false }
        calls[id, default: 0] += 1
        return true
    }

    private static func end(_ id: String, in calls: inout [String: Int]) {
        let rest = calls[id, default: 1] - 1
        calls[id] = rest > 0 ? rest : nil
    }

    // MARK: Bodies

    private static func body(of exchange: any Exchange) async -> Result<[UInt8], APIProblem> {
        do throws(Refusal) {
            try await exchange.readWholeBody(atMost: APIOperation.mostBodyBytes)
        } catch {
            return .failure(
                error.code == .tooLarge
                    ? APIProblem(
                        413, code: "too-large",
                        detail: "a body is limited to \(APIOperation.mostBodyBytes) bytes")
                    : APIProblem(400, code: "invalid", detail: error.detail))
        }
        return .success(exchange.request.body)
    }

    // MARK: Commands

    /// Runs a command line that another machine has sent (`countersign --api`).
    private func runRemotely(_ exchange: any Exchange, for caller: Caller) async -> ServerResponse {
        let body: [UInt8]
        switch await AdminAPIService.body(of: exchange) {
        case .success(let read): body = read
        case .failure(let problem): return problem.response
        }
        switch remoteExecution(of: exchange.request, body: body, for: caller) {
        case .failure(let problem): return problem.response
        case .success(let execution):
            return await perform(execution.command, for: caller) {
                switch execution.outcome {
                case .failure(let error): APIProblem(error).response
                case .success(let result): AdminAPIService.response(to: result)
                }
            }
        }
    }

    private func remoteExecution(
        of request: Request, body: [UInt8], for caller: Caller
    ) -> Result<CommandExecution, APIProblem> {
        do throws(APIProblem) {
            try APIRouter.checkType(of: request)
            let call = try RemoteCommand(body)
            let command = try call.command(for: caller.token)
            return .success(
                CommandExecution(
                    command: command, words: call.arguments, standardInput: Array(call.input.utf8),
                    host: caller.host, environment: environment))
        } catch {
            return .failure(error)
        }
    }

    private static func response(to result: CommandExecution.Result) -> ServerResponse {
        let answer: JSONValue = [
            "status": .integer(Int64(result.status.rawValue)),
            "output": .string(String(decoding: result.output, as: UTF8.self)), "notes": .string(result.notes),
        ]
        return ServerResponse(
            status: 200, type: "application/json",
            fields: [ServerResponse.Field("Cache-Control", value: "no-store")], body: answer.bytes)
    }
}
