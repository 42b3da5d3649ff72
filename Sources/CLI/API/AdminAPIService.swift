import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignWire

/// Serves `/api/` of the admin listener: finds the operation of a request, checks its token and its values,
/// and runs the operation's command on a thread of its own, one at a time. Source:
/// docs/decisions/0083-admin-api.md.
final class AdminAPIService: AdminAPI {
    /// One thread: commands are written for a process of their own. The others wait, each at most that long.
    private static let bounds = WorkPool.Bounds(workers: 1, queue: 32, patience: 10_000)

    private let environment: Environment
    private let pool: WorkPool
    private let tokens = APITokenCheck()
    private let kept = Locked(KeptAnswers())

    convenience init(environment: Environment) throws(OperationalError) {
        self.init(
            environment: environment, pool: try WorkPool(AdminAPIService.bounds, for: .administration))
    }

    private init(environment: Environment, pool: WorkPool) {
        self.environment = environment
        self.pool = pool
    }

    func answer(to exchange: any Exchange, in configuration: Configuration) async -> ServerResponse {
        switch admit(exchange.request, configuration: configuration) {
        case .answered(let response): return response
        case .commands(let caller): return await runRemotely(exchange, for: caller)
        case .operation(let call, let caller): return await answer(call, on: exchange, for: caller)
        }
    }

    /// The party that calls, and where its commands run.
    private final class Caller: Sendable {
        let token: APIToken
        let host: CommandHost

        init(token: APIToken, configuration: Configuration) {
            self.token = token
            host = CommandHost(configuration, actor: .token(id: token.id, name: token.name))
        }
    }

    private enum Admission {
        case answered(ServerResponse)
        case operation(APICall, Caller)
        /// A command line of another machine.
        case commands(Caller)
    }

    /// What the head allows, before a body is read.
    private func admit(_ request: Request, configuration: Configuration) -> Admission {
        do throws(APIProblem) {
            try APIRouter.checkHost(of: request, configuration: configuration)
            let path = request.head.span.extracting(request.path.range).text
            if path == "/api/openapi.json" { return .answered(try APIRouter.document(for: request)) }
            guard path.hasPrefix("\(APIOperation.prefix)/") else { throw APIRouter.noPath }
            let token = try tokens.token(of: request, configuration: configuration)
            let segments = try APIRouter.segments(of: path.dropFirst(APIOperation.prefix.utf8.count))
            if segments == ["commands"] {
                guard request.matches(request.method, text: "POST") else {
                    throw APIRouter.otherMethod(allowed: ["POST"])
                }
                return .commands(Caller(token: token, configuration: configuration))
            }
            let call = try APIRouter.call(at: segments, for: request)
            let operation = call.operation
            guard token.scopes.contains(operation.scope) else {
                throw APIProblem(
                    403, code: "scope-missing",
                    detail: "token \(token.name): \(operation.id) needs the scope \(operation.scope.rawValue)"
                )
            }
            return .operation(call, Caller(token: token, configuration: configuration))
        } catch {
            return .answered(error.response)
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
        let prepared: Prepared
        switch prepare(call, request: exchange.request, body: body, token: caller.token) {
        case .success(let ready): prepared = ready
        case .failure(let problem): return problem.response
        }
        if let earlier = prepared.earlier { return earlier }
        if let problem = await mismatch(of: exchange.request, call: call, for: caller) {
            return problem.response
        }
        switch await run(call.operation, line: prepared.line, for: caller) {
        case .success(let answer):
            keep(answer, to: prepared.keyed)
            return answer
        case .failure(let problem): return problem.response
        }
    }

    private struct Prepared: Sendable {
        let line: APICommandLine
        let keyed: KeptAnswers.Call?
        /// The answer of an earlier call with the same key.
        let earlier: ServerResponse?
    }

    private func prepare(
        _ call: APICall, request: Request, body: [UInt8], token: APIToken
    ) -> Result<Prepared, APIProblem> {
        let operation = call.operation
        do throws(APIProblem) {
            if !body.isEmpty, operation.bodySchema != nil { try APIRouter.checkType(of: request) }
            let query = request.query.map { request.head.span.extracting($0.range).text }
            let line = try operation.commandLine(path: call.values, query: query, body: body)
            let path = request.head.span.extracting(request.path.range).text
            let keyed = try keyedCall(of: request, operation: operation, path: path, body: body, token: token)
            return .success(Prepared(line: line, keyed: keyed, earlier: try earlierAnswer(to: keyed)))
        } catch {
            return .failure(error)
        }
    }

    /// Nil unless the request has an `Idempotency-Key`.
    private func keyedCall(
        of request: Request, operation: APIOperation, path: String, body: [UInt8], token: APIToken
    ) throws(APIProblem) -> KeptAnswers.Call? {
        guard operation.method == .post, let key = try APIRouter.idempotencyKey(of: request) else {
            return nil
        }
        return KeptAnswers.Call(key: key, token: token.id, path: path, body: body)
    }

    private func earlierAnswer(to call: KeptAnswers.Call?) throws(APIProblem) -> ServerResponse? {
        guard let call else { return nil }
        let found = kept.with { $0.find(call) }
        switch found {
        case .success(let answer): return answer
        case .failure(let problem): throw problem
        }
    }

    private func keep(_ answer: ServerResponse, to call: KeptAnswers.Call?) {
        guard let call else { return }
        kept.with { $0.keep(answer, to: call) }
    }

    // MARK: Running

    private func run(
        _ operation: APIOperation, line: APICommandLine, for caller: Caller
    ) async -> Result<ServerResponse, APIProblem> {
        let command = operation.command
        let json = command.options.contains { $0.name == Option.json.name } ? ["--json"] : []
        let execution = CommandExecution(
            command: command, words: json + line.words(for: command), standardInput: line.standardInput,
            host: caller.host, environment: environment)
        let result = await perform(execution)
        return result.flatMap { AdminAPIService.response(to: operation, result: $0) }
    }

    private static func response(
        to operation: APIOperation, result: CommandExecution.Result
    ) -> Result<ServerResponse, APIProblem> {
        guard !result.output.isEmpty else {
            return .failure(
                APIProblem(503, code: "unavailable", detail: "\(operation.id): the command printed nothing"))
        }
        var fields = [ServerResponse.Field("Cache-Control", value: "no-store")]
        if operation.method == .get { fields.append(.init("ETag", value: tag(of: result.output))) }
        return .success(
            ServerResponse(
                status: operation.status, type: "application/json", fields: fields, body: result.output))
    }

    private func perform(
        _ execution: CommandExecution
    ) async -> Result<CommandExecution.Result, APIProblem> {
        let outcome: Result<CommandExecution.Result, OperationalError>
        do throws(Refusal) {
            outcome = try await pool.run { execution.outcome }
        } catch {
            return .failure(
                APIProblem(503, code: "unavailable", detail: "too many calls wait; try again later"))
        }
        return outcome.mapError { APIProblem($0) }
    }

    /// Compares what is to be replaced with the tag that the caller has read; nil if it is the same.
    private func mismatch(of request: Request, call: APICall, for caller: Caller) async -> APIProblem? {
        guard let field = request.value(of: "if-match") else { return nil }
        let given = request.head.span.extracting(field.range).text
        guard AdminAPIService.isTag(given) else {
            return APIProblem(400, code: "invalid", detail: "If-Match: expected one ETag of this API")
        }
        let operation = call.operation
        guard let reading = APIOperation.all.first(where: { $0.id == operation.reading }) else {
            return APIProblem(
                400, code: "invalid", detail: "If-Match: \(operation.id) replaces nothing that has a tag")
        }
        var line = APICommandLine()
        for input in reading.inputs { line.add(text: call.values[input.name] ?? "", as: input.use) }
        switch await run(reading, line: line, for: caller) {
        case .success(let now):
            guard now.fields.contains(where: { $0.name == "ETag" && $0.value == given }) else {
                return APIProblem(412, code: "changed", detail: "If-Match: it has changed; read it again")
            }
            return nil
        case .failure(let problem): return problem
        }
    }

    private static func isTag(_ text: String) -> Bool {
        text.utf8.count == 18 && text.hasPrefix("\"") && text.hasSuffix("\"")
            && text.dropFirst().dropLast().utf8.allSatisfy { ASCII.isDigit($0) || (0x61...0x66).contains($0) }
    }

    private static func tag(of body: [UInt8]) -> String {
        let digest = SHA256.digest(body.span)
        let beginning = (0..<8).map { digest[$0] }
        return "\"" + Hex.encode(beginning.span) + "\""
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
            switch await perform(execution) {
            case .failure(let problem): return problem.response
            case .success(let result): return AdminAPIService.response(to: result)
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
