import CountersignAuthority
import CountersignServer
import CountersignWire

/// One operation of the admin API: a command of the command line under an HTTP method and a path. The command
/// alone does the work, so that both have one behaviour. Source: docs/decisions/0083-admin-api.md.
struct APIOperation: Sendable {
    enum Method: String, Sendable, CaseIterable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"

        /// Whether inputs beside those of the path are members of a body; else they are parameters.
        var hasBody: Bool { self != .get && self != .delete }
    }

    /// In lower camel case, as generators of clients name the function.
    let id: String
    let method: Method
    /// Below `/api/v1`: `/apps/{app}/policy`. Each name in braces is an input.
    let path: String
    let scope: APIScope
    /// One that suffices in its place; nil if none does.
    let narrowerScope: APIScope?
    let command: Command
    let inputs: [APIInput]
    /// Options that are always given.
    let fixedWords: [String]
    let status: Int
    let response: APISchema
    /// The operation that reads what this one replaces: its answer's `ETag` may be given in `If-Match`.
    let reading: String?
    /// What a command that ends with another status than success has done.
    let statusMeaning: StatusMeaning
    /// What performs it; nil if its command does.
    let performance: Performance?

    typealias Performance = @Sendable (APIValues, Administration) throws(OperationalError) -> JSONValue

    enum StatusMeaning: Sendable {
        /// What was asked for; its output says what it has found.
        case finding
        /// Nothing: it has failed.
        case failure
    }

    init(
        _ id: String, method: Method, path: String, scope: APIScope, orScope narrowerScope: APIScope? = nil,
        command: Command, inputs: [APIInput] = [], fixedWords: [String] = [], status: Int = 200,
        response: APISchema,
        reading: String? = nil, statusMeaning: StatusMeaning = .finding, performance: Performance? = nil
    ) {
        self.id = id
        self.method = method
        self.path = path
        self.scope = scope
        self.narrowerScope = narrowerScope
        self.command = command
        self.inputs = inputs
        self.fixedWords = fixedWords
        self.status = status
        self.response = response
        self.reading = reading
        self.statusMeaning = statusMeaning
        self.performance = performance
    }

    static let prefix = "/api/v1"

    func isAllowed(by scopes: Set<APIScope>) -> Bool {
        scopes.contains(scope) || narrowerScope.map(scopes.contains) ?? false
    }

    /// The scopes that allow it, of which one is needed.
    func scopes(quotedBy quote: String = "") -> String {
        [scope, narrowerScope].compactMap { $0.map { quote + $0.rawValue + quote } }.joined(separator: " or ")
    }

    func isInPath(_ input: APIInput) -> Bool { path.contains("{\(input.name)}") }

    /// Those of a body, or of the query.
    var otherInputs: [APIInput] { inputs.filter { !isInPath($0) } }

    /// The form of the body; nil for an operation without one.
    var bodySchema: APISchema? {
        guard method.hasBody, !otherInputs.isEmpty else { return nil }
        return .object(
            otherInputs.map {
                APIMember(
                    $0.name, schema: $0.schema, presence: $0.isRequired ? .required : .optional,
                    meaning: $0.meaning)
            })
    }

    /// Where the command is told which file to read; nil if it reads none.
    var documentPlace: APIInput.DocumentPlace? {
        for input in inputs { if case .document(let place) = input.use { return place } }
        return nil
    }

    /// The values of the path's names; nil if the segments are of another path.
    func match(_ segments: [String]) -> [String: String]? {
        let pattern = path.split(separator: "/").map(String.init)
        guard pattern.count == segments.count else { return nil }
        var values: [String: String] = [:]
        for (expected, found) in zip(pattern, segments) {
            if expected.hasPrefix("{") {
                values[String(expected.dropFirst().dropLast())] = found
            } else if expected != found {
                return nil
            }
        }
        return values
    }
}

/// One value that an operation takes.
struct APIInput: Sendable {
    /// What the value is for the command.
    enum Use: Sendable {
        case positional(String)
        case option(String)
        /// An option without a value, given where the input is true.
        case flag(String)
        /// A list whose elements are joined by commas.
        case joined(String)
        /// An object of names and values, each as `NAME=VALUE`; null is the empty value.
        case assignments(String)
        /// The command's standard input, with the flag that has it read.
        case standardInput(flag: String)
        /// A JSON object, which the command reads from standard input because its file is `-`.
        case document(DocumentPlace)
        /// Seconds to wait for an element of a list that has none yet. The API waits; the command does not.
        case patience
    }

    /// Where a command is told which file to read.
    enum DocumentPlace: Sendable {
        case positional(String)
        case option(String)

        func value(in arguments: Arguments) -> String? {
            switch self {
            case .positional(let name): arguments.positional(name)
            case .option(let name): arguments.value(name)
            }
        }
    }

    let name: String
    let schema: APISchema
    let use: Use
    let meaning: String
    let isRequired: Bool

    static func required(
        _ name: String, as use: Use, schema: APISchema = .name, meaning: String
    ) -> APIInput {
        APIInput(name: name, schema: schema, use: use, meaning: meaning, isRequired: true)
    }

    static func optional(
        _ name: String, as use: Use, schema: APISchema = .name, meaning: String
    ) -> APIInput {
        APIInput(name: name, schema: schema, use: use, meaning: meaning, isRequired: false)
    }
}

/// What a command is given for an operation's inputs.
struct APICommandLine: Sendable {
    private var options: [String] = []
    private var positionals: [String: String] = [:]
    private(set) var standardInput: [UInt8] = []

    init(_ values: APIValues, of operation: APIOperation) {
        options = operation.fixedWords.filter { $0.hasPrefix("--") }
        for input in operation.inputs { values.add(input, to: &self) }
        // A fixed word that is no option stands in the place of the last positional.
        if let word = operation.fixedWords.first(where: { !$0.hasPrefix("--") }),
            let last = operation.command.positionals.last
        {
            positionals[last.name] = word
        }
    }

    /// The words after the command's own; a value never becomes an option.
    func words(for command: Command) -> [String] {
        options + ["--"] + command.positionals.compactMap { positionals[$0.name] }
    }

    mutating func add(text: String, as use: APIInput.Use) {
        switch use {
        case .positional(let name): positionals[name] = text
        case .option(let name), .joined(let name), .assignments(let name): options.append("--\(name)=\(text)")
        case .flag(let name): if text == "true" { options.append("--\(name)") }
        case .standardInput(let flag):
            options.append("--\(flag)")
            standardInput = Array(text.utf8)
        case .document(let place): add(document: Array(text.utf8), at: place)
        case .patience: break
        }
    }

    /// Adds a value of the body, which the operation's schema has accepted.
    mutating func add(_ value: JSON, of document: JSONDocument, as use: APIInput.Use) {
        switch (use, value.content) {
        case (_, .null): break
        case (.assignments(let name), .object(let members)):
            for member in members { options.append("--\(name)=\(member.name)=\(member.value.string ?? "")") }
        case (.document(let place), .object): add(document: Array(document.bytes(of: value)), at: place)
        case (.joined(let name), .array(let elements)):
            options.append("--\(name)=\(elements.compactMap(\.string).joined(separator: ","))")
        case (_, .string(let text)): add(text: text, as: use)
        case (_, .number): add(text: document.text(of: value), as: use)
        case (_, .bool(let flag)): add(text: flag ? "true" : "false", as: use)
        case (_, .array), (_, .object): break
        }
    }

    private mutating func add(document bytes: [UInt8], at place: APIInput.DocumentPlace) {
        switch place {
        case .positional(let name): positionals[name] = "-"
        case .option(let name): options.append("--\(name)=-")
        }
        standardInput = bytes
    }
}
