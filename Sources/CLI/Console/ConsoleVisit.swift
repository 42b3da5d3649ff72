import CountersignAuthority
import CountersignHTTP
import CountersignServer
import CountersignWire

/// One request of a signed-in operator, on the thread that runs commands.
struct ConsoleVisit: Sendable {
    let session: APIToken
    /// What the forms of the pages send back.
    let formToken: FormToken
    let figures: ServerFigures
    let host: CommandHost
    let environment: Environment
    /// The answers to forms that were sent: a second click gets the first one's.
    let answers: KeptAnswerTable
    /// In whole Unix seconds.
    let now: Int64

    func may(_ scope: APIScope) -> Bool { session.scopes.contains(scope) }

    /// Whether the operator may run the operation.
    func may(_ operation: String) -> Bool {
        APIOperation.all.first { $0.id == operation }?.isAllowed(by: session.scopes) ?? false
    }

    func require(_ scope: APIScope) throws(APIProblem) {
        guard may(scope) else { throw ConsoleVisit.missing(scope.rawValue) }
    }

    func require(_ operation: APIOperation) throws(APIProblem) {
        guard operation.isAllowed(by: session.scopes) else {
            throw ConsoleVisit.missing(operation.scopes())
        }
    }

    private static func missing(_ scopes: String) -> APIProblem {
        APIProblem(403, code: "scope-missing", detail: "this session does not have the scope \(scopes)")
    }

    /// Runs an operation of the admin API and returns what its command prints. `values` are those of its path
    /// and its query, and `body` those of its body.
    @discardableResult
    func run(
        _ id: String, values: [String: String] = [:], body: [(name: String, value: JSONValue)] = [],
        once key: String? = nil
    ) throws(APIProblem) -> ConsoleRecord {
        guard let operation = APIOperation.all.first(where: { $0.id == id }) else {
            throw APIProblem(404, code: "not-found", detail: "`\(id)`: no such operation")
        }
        try require(operation)
        let query =
            operation.method.hasBody
            ? nil
            : ConsolePath.query(
                operation.otherInputs.compactMap { input in
                    values[input.name].map { (name: input.name, value: $0) }
                })
        let checked = try operation.values(
            path: values, query: query.map { String($0.dropFirst()) },
            body: operation.bodySchema == nil ? [] : JSONValue.object(body).bytes)
        let job = APIJob(
            call: APICall(operation, values: values), values: checked,
            keyed: key.map {
                let content = Array("\(id) \(values.sorted { $0.key < $1.key })".utf8)
                return KeptAnswers.Call(key: $0, token: session.id, path: id, body: content)
            }, tag: nil,
            kept: answers, host: host, environment: environment)
        guard let record = ConsoleRecord(try job.perform().body) else {
            throw APIProblem(503, code: "unavailable", detail: "`\(id)`: the command printed no object")
        }
        return record
    }

    /// Performs an operation.
    func perform<Input, Result>(
        _ operation: Operation<Input, Result>, _ input: Input
    ) throws(APIProblem) -> Result {
        do throws(OperationalError) {
            return try operation.perform(input, in: host.administration)
        } catch {
            throw APIProblem(error)
        }
    }

    func perform<Result>(_ operation: Operation<Void, Result>) throws(APIProblem) -> Result {
        try perform(operation, ())
    }

    /// The app of a path.
    func app(_ text: String) throws(APIProblem) -> AppName {
        do throws(OperationalError) {
            return try AppName(argument: text)
        } catch {
            throw APIProblem(error)
        }
    }

    /// The names of the apps; empty without the scope to read them.
    func apps() throws(APIProblem) -> [String] {
        may(.appsRead) ? try perform(AppOperations.list).apps.map(\.app.name.description) : []
    }

    /// Ends the operator's own session.
    func signOut() throws(APIProblem) {
        do throws(OperationalError) {
            let deployment = try host.open()
            try deployment.endConsoleSession(session.id, at: now)
        } catch {
            throw APIProblem(error)
        }
    }
}
