import CountersignAuthority
import CountersignServer
import CountersignWire

/// A command line for the server: the command's words, what follows them, and its standard input. Only
/// commands of the table of operations run, with options that the table exposes: no option that names a file
/// of the server.
struct RemoteCommand: Sendable {
    private static let schema = APISchema.object([
        APIMember("words", schema: .list(.text)), APIMember("arguments", schema: .list(.text)),
        APIMember("input", schema: .text, presence: .optional),
    ])

    let words: [String]
    let arguments: [String]
    let input: String

    init(words: [String], arguments: [String], input: String) {
        (self.words, self.arguments, self.input) = (words, arguments, input)
    }

    init(_ body: [UInt8]) throws(APIProblem) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(body)
        } catch {
            throw APIProblem(400, code: "invalid", detail: "body: not JSON: \(error)")
        }
        if let flaw = RemoteCommand.schema.flaw(in: document.root, of: document, at: "body") {
            throw APIProblem(400, code: "invalid", detail: flaw)
        }
        func texts(_ name: String) -> [String] {
            document.root[name]?.elements?.compactMap(\.string) ?? []
        }
        self.init(
            words: texts("words"), arguments: texts("arguments"), input: document.root["input"]?.string ?? "")
    }

    var body: JSONValue {
        ["words": .strings(words), "arguments": .strings(arguments), "input": .string(input)]
    }

    /// The command, if the token may run it with these options.
    func command(for token: APIToken) throws(APIProblem) -> Command {
        let operations = APIOperation.all.filter { $0.command.words == words }
        guard let command = operations.first?.command else {
            throw APIProblem(
                400, code: "invalid",
                detail: "`\(words.joined(separator: " "))`: not a command that runs over the API")
        }
        let parsed: Arguments
        do throws(OperationalError) {
            parsed = try Arguments.parse(arguments, for: command)
        } catch {
            throw APIProblem(error)
        }
        for name in parsed.optionNames
        where name != "json" && !operations.contains(where: { $0.takes(option: name) }) {
            throw APIProblem(
                400, code: "invalid",
                detail: "--\(name): `countersign \(command.name)` does not take this option over the API")
        }
        let allowed = operations.filter { operation in
            parsed.optionNames.allSatisfy { $0 == "json" || operation.takes(option: $0) }
                && operation.isComplete(parsed)
                && operation.fixedWords.allSatisfy { word in
                    !word.hasPrefix("--") || parsed.has(String(word.dropFirst(2)))
                }
        }
        guard !allowed.isEmpty else {
            let forms = operations.map(\.remoteForm).joined(separator: ", or ")
            throw APIProblem(
                400, code: "invalid",
                detail: "`countersign \(command.name)`: over the API expected \(forms)")
        }
        // A path would be one of the server.
        for place in allowed.compactMap(\.documentPlace) {
            guard let file = place.value(in: parsed), file != "-" else { continue }
            throw APIProblem(
                400, code: "invalid",
                detail: "`countersign \(command.name)`: over the API expected `-` in place of `\(file)`, and "
                    + "its content on standard input")
        }
        guard allowed.contains(where: { $0.isAllowed(by: token.scopes) }) else {
            let needed = Set(allowed.map { $0.scopes() }).sorted().joined(separator: " or ")
            throw APIProblem(
                403, code: "scope-missing",
                detail: "token \(token.name): `countersign \(command.name)` needs the scope \(needed)")
        }
        return command
    }
}

extension APIOperation {
    /// The options that the command needs to run as this operation.
    fileprivate var remoteForm: String {
        let required = inputs.filter(\.isRequired).compactMap { input -> String? in
            switch input.use {
            case .positional, .document(.positional), .patience: nil
            case .document(.option(let name)): "--\(name) -"
            case .option(let name), .flag(let name), .joined(let name), .assignments(let name),
                .standardInput(let name):
                "--\(name)"
            }
        }
        let words = required + fixedWords.filter { $0.hasPrefix("--") }
        return words.isEmpty ? "no option that changes something" : "`\(words.joined(separator: " "))`"
    }

    /// Whether the options of all required inputs are given; the parser has made sure of the positionals.
    fileprivate func isComplete(_ arguments: Arguments) -> Bool {
        inputs.allSatisfy { input in
            switch input.use {
            case .positional, .patience: true
            case .document(let place): !input.isRequired || place.value(in: arguments) != nil
            case .option(let name), .flag(let name), .joined(let name), .assignments(let name),
                .standardInput(let name):
                !input.isRequired || arguments.has(name)
            }
        }
    }

    fileprivate func takes(option name: String) -> Bool {
        fixedWords.contains("--\(name)")
            || inputs.contains { input in
                switch input.use {
                case .positional, .document(.positional), .patience: false
                case .option(let option), .document(.option(let option)), .flag(let option),
                    .joined(let option), .assignments(let option),
                    .standardInput(let option):
                    option == name
                }
            }
    }
}
