import CountersignHTTP
import CountersignSeal
import CountersignServer
import CountersignWire

/// One call, ready to run. The API's one thread runs it as a whole, so that no other call comes between the
/// comparison with `If-Match`, the look for an earlier answer, and the command.
struct APIJob: Sendable {
    let call: APICall
    let values: APIValues
    /// Nil unless the request has an `Idempotency-Key`.
    let keyed: KeptAnswers.Call?
    /// What `If-Match` names; nil without it.
    let tag: String?
    let kept: KeptAnswerTable
    let host: CommandHost
    let environment: Environment

    func run() -> ServerResponse {
        do throws(APIProblem) {
            return try perform()
        } catch {
            return error.response
        }
    }

    func perform() throws(APIProblem) -> ServerResponse {
        if let keyed, let earlier = try kept.find(keyed) { return earlier }
        if let tag { try checkUnchanged(since: tag) }
        let answer = try perform(call.operation, values: values)
        if let keyed { kept.keep(answer, to: keyed) }
        return answer
    }

    /// Compares what is to be replaced with the tag that the caller has read.
    private func checkUnchanged(since tag: String) throws(APIProblem) {
        guard let reading = APIOperation.all.first(where: { $0.id == call.operation.reading }) else { return }
        let now = try perform(reading, values: APIValues(texts: call.values))
        guard now.fields.contains(where: { $0.name == "ETag" && $0.value == tag }) else {
            throw APIProblem(412, code: "changed", detail: "If-Match: it has changed; read it again")
        }
    }

    private func perform(
        _ operation: APIOperation, values: APIValues
    ) throws(APIProblem) -> ServerResponse {
        guard let performance = operation.performance else { return try execute(operation, values: values) }
        do throws(OperationalError) {
            let result = try performance(values, host.administration)
            return APIJob.response(to: operation, body: Array((result.prettyText + "\n").utf8))
        } catch {
            throw APIProblem(error)
        }
    }

    private func execute(
        _ operation: APIOperation, values: APIValues
    ) throws(APIProblem) -> ServerResponse {
        let line = APICommandLine(values, of: operation)
        let command = operation.command
        let json = command.options.contains { $0.name == Option.json.name } ? ["--json"] : []
        let execution = CommandExecution(
            command: command, words: json + line.words(for: command), standardInput: line.standardInput,
            host: host, environment: environment)
        switch execution.outcome {
        case .success(let result): return try APIJob.response(to: operation, result: result)
        case .failure(let error): throw APIProblem(error)
        }
    }

    private static func response(
        to operation: APIOperation, result: CommandExecution.Result
    ) throws(APIProblem) -> ServerResponse {
        guard !result.output.isEmpty else {
            throw APIProblem(503, code: "unavailable", detail: "\(operation.id): the command printed nothing")
        }
        guard result.status == .success || operation.statusMeaning == .finding else {
            throw APIProblem(409, code: "conflict", detail: String(decoding: result.output, as: UTF8.self))
        }
        return response(to: operation, body: result.output)
    }

    private static func response(to operation: APIOperation, body: [UInt8]) -> ServerResponse {
        var fields = [ServerResponse.Field("Cache-Control", value: "no-store")]
        if operation.method == .get {
            fields.append(ServerResponse.Field("ETag", value: tag(of: body)))
        }
        return ServerResponse(
            status: operation.status, type: "application/json", fields: fields, body: body)
    }

    /// Whether it is the answer of an operation that lists, with nothing in the list.
    static func isEmptyList(_ response: ServerResponse) -> Bool {
        guard response.status == 200, let document = try? JSONReader.read(response.body) else { return false }
        return document.root.members?.contains { $0.value.elements?.isEmpty == true } == true
    }

    private static func tag(of body: [UInt8]) -> String {
        let digest = SHA256.digest(body.span)
        let beginning = (0..<8).map { digest[$0] }
        return "\"" + Hex.encode(beginning.span) + "\""
    }
}
