import CountersignAuthority
import CountersignSeal
import CountersignServer
import CountersignThreads
import CountersignTransport
import CountersignTrust
import CountersignWire

/// The server that commands are sent to in place of running them here: `countersign --api URL --token-file F
/// app list`.
struct RemoteServer: Sendable {
    private static let mostResponseBytes = 24 << 20

    let origin: Origin
    private let token: String

    /// Takes the options for it off the beginning of a command line; nil if they are not there.
    init?(taking arguments: inout [String]) throws(OperationalError) {
        var values: [String: String] = [:]
        while let word = arguments.first, ["--api", "--token-file"].contains(word) {
            guard arguments.count > 1 else {
                throw OperationalError(.usage, message: "\(word): expected a value after it")
            }
            values[word] = arguments[1]
            arguments.removeFirst(2)
        }
        guard !values.isEmpty else { return nil }
        guard let text = values["--api"], let file = values["--token-file"] else {
            throw OperationalError(.usage, message: "--api and --token-file: expected both")
        }
        origin = try RemoteServer.origin(of: text)
        token = try RemoteServer.token(in: file)
    }

    /// Without TLS only to this machine: the token opens the deployment.
    private static func origin(of text: String) throws(OperationalError) -> Origin {
        guard let url = ServiceURL(text, parameters: []), url.user == nil, url.path ?? "" == "",
            url.scheme == "https" || url.scheme == "http",
            let (name, port) = HostPort.split(String(url.hosts)), port != 0,
            let host = try? Trust.Host(name)
        else {
            throw OperationalError(
                .usage, message: "--api `\(text)`: expected https://HOST[:PORT], or http:// to this machine")
        }
        guard url.scheme == "https" || ServiceURL.isLoopback(host: name) else {
            throw OperationalError(
                .usage, message: "--api `\(text)`: expected https://, since it is not this machine")
        }
        return Origin(url.scheme == "https" ? .tls : .plaintext, host: host, port: port ?? 0)
    }

    private static func token(in file: String) throws(OperationalError) -> String {
        guard let secret = try KeyFile.read(file) else {
            throw OperationalError(.usage, message: "--token-file \(file): no such file")
        }
        return secret.withExposedBytes { $0.text }
    }

    /// Sends the command, and prints what it says there.
    func run(_ command: Command, arguments: [String], console: Console) throws(OperationalError) -> ExitStatus
    {
        let parsed = try Arguments.parse(arguments, for: command)
        if parsed.has("follow") { try followAudit(parsed, console: console) }
        let readsInput =
            parsed.optionNames.contains { $0.hasSuffix("-stdin") || $0 == "set-secret" }
            || APIOperation.all.contains { operation in
                operation.command.words == command.words && operation.documentPlace?.value(in: parsed) == "-"
            }
        let input = readsInput ? String(decoding: try console.read(limit: 1 << 16), as: UTF8.self) : ""
        let call = RemoteCommand(words: command.words, arguments: arguments, input: input)
        let answer = try BlockingTask.run { () async throws(OperationalError) in try await send(call) }
        console.writeError(answer.notes)
        try console.write(Array(answer.output.utf8))
        return answer.status
    }

    private func send(
        _ call: RemoteCommand
    ) async throws(OperationalError) -> (status: ExitStatus, output: String, notes: String) {
        let document = try await document(
            answering: OutgoingRequest(
                "POST", origin: origin, target: "\(APIOperation.prefix)/commands",
                fields: [authorization, HeaderField("Content-Type", value: "application/json")],
                body: .bytes(call.body.bytes)))
        guard let number = document.root["status"].flatMap({ document.integer($0, in: 0...255) }),
            let result = ExitStatus(rawValue: Int32(number)), let output = document.root["output"]?.string,
            let notes = document.root["notes"]?.string
        else { throw OperationalError(.failed, message: "\(origin): the answer is not that of a command") }
        return (result, output, notes)
    }

    private var authorization: HeaderField { HeaderField("Authorization", value: "Bearer \(token)") }

    /// What an operation that reads answers.
    func get(_ target: String) async throws(OperationalError) -> JSONDocument {
        try await document(
            answering: OutgoingRequest("GET", origin: origin, target: target, fields: [authorization]))
    }

    private func document(
        answering request: OutgoingRequest
    ) async throws(OperationalError) -> JSONDocument {
        let status: Int
        let body: [UInt8]
        do throws(TransportError) {
            let response = try await HTTPTransport(trust: .system).send(request)
            status = response.status
            body = try await response.body.collect(upTo: RemoteServer.mostResponseBytes)
        } catch {
            throw OperationalError(.unreachable, message: "\(origin): \(error)")
        }
        guard let document = try? JSONReader.read(body) else {
            throw OperationalError(.failed, message: "\(origin): status \(status), and no JSON")
        }
        guard status == 200 else {
            let detail = document.root["detail"]?.string ?? "status \(status)"
            throw OperationalError(RemoteServer.kind(of: status), message: detail)
        }
        return document
    }

    private static func kind(of status: Int) -> OperationalError.Kind {
        switch status {
        case 400: .usage
        case 404: .missing
        case 503: .unreachable
        default: .failed
        }
    }
}
