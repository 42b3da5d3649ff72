import CountersignAuthority
import CountersignServer
import CountersignWire

/// The values that a call gives an operation. The schemas of the operation's inputs have accepted them.
struct APIValues: Sendable {
    /// Of the path and the query, by the input's name.
    private let texts: [String: String]
    private let body: JSONDocument?

    init(texts: [String: String], body: JSONDocument? = nil) { (self.texts, self.body) = (texts, body) }

    /// A value of the path or the query, or a string or number of the body; nil if it is absent or null.
    func text(_ name: String) -> String? {
        if let text = texts[name] { return text }
        guard let body, let value = body.root[name] else { return nil }
        switch value.content {
        case .string(let text): return text
        case .number: return body.text(of: value)
        case .null, .bool, .array, .object: return nil
        }
    }

    func required(_ name: String) throws(OperationalError) -> String {
        guard let text = text(name) else {
            throw OperationalError(.usage, message: "\(name) is missing")
        }
        return text
    }

    func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) } }

    func isTrue(_ name: String) -> Bool {
        if let text = texts[name] { return text == "true" }
        if case .bool(true)? = body?.root[name]?.content { return true }
        return false
    }

    /// The strings of a list; nil if it is absent.
    func strings(_ name: String) -> [String]? { body?.root[name]?.elements?.compactMap(\.string) }

    /// The members of an object as `NAME=VALUE`; null is the empty value.
    func assignments(_ name: String) -> [String] {
        (body?.root[name]?.members ?? []).map { "\($0.name)=\($0.value.string ?? "")" }
    }

    /// An object, as it was sent; nil if it is absent.
    func document(_ name: String) -> [UInt8]? {
        guard let body, let value = body.root[name], value.members != nil else { return nil }
        return Array(body.bytes(of: value))
    }

    /// Seconds to wait while the operation's list is empty.
    var patience: Int { texts["wait"].flatMap { Int($0) } ?? 0 }

    /// The value of an input, for a command line.
    func add(_ input: APIInput, to line: inout APICommandLine) {
        if let text = texts[input.name] { line.add(text: text, as: input.use) }
        if let body, let value = body.root[input.name] { line.add(value, of: body, as: input.use) }
    }

    func app() throws(OperationalError) -> AppName { try AppName(argument: required("app")) }
}

extension APIOperation {
    /// An operation whose input is read from the call's values.
    init<Input, Result>(
        _ id: String, method: Method, path: String, performing operation: Operation<Input, Result>,
        command: Command, inputs: [APIInput] = [], status: Int = 200, reading: String? = nil,
        input: @escaping @Sendable (APIValues) throws(OperationalError) -> Input
    ) {
        self.init(
            id, method: method, path: path, scope: operation.scope, orScope: operation.narrowerScope,
            command: command, inputs: inputs, status: status, response: Result.schema, reading: reading,
            performance: { (values, administration) throws(OperationalError) in
                try operation.perform(try input(values), in: administration).json
            })
    }

    init<Result>(
        _ id: String, method: Method, path: String, performing operation: Operation<Void, Result>,
        command: Command, status: Int = 200
    ) {
        self.init(id, method: method, path: path, performing: operation, command: command, status: status) {
            (_) throws(OperationalError) in ()
        }
    }
}

extension Invocation {
    /// Performs an operation on the command's deployment.
    func perform<Input, Result>(
        _ operation: Operation<Input, Result>, _ input: Input,
        absence: DataFolder.MissingFolderAction = .fail
    ) throws(OperationalError) -> Result {
        try operation.perform(
            input,
            in: Administration(deployment: deployment(absence: absence), scopes: host?.scopes, now: now))
    }

    /// Text for people, or with `--json` the same as JSON.
    func print(_ value: some APIValue, text: () -> String) throws(OperationalError) {
        try print(value.json, text: text)
    }
}
