import CountersignLab
import CountersignWire

/// What a port reports of an action that succeeded.
struct PortResult {
    let document: JSONDocument
    /// The member `ok`.
    let members: JSON

    /// A member that is text; empty if it is missing.
    func text(_ name: String) -> String { members[name]?.string ?? "" }

    /// A member that is a whole number.
    func number(_ name: String) -> Int? {
        members[name].flatMap { document.integer($0, in: 0...Int(Int32.max)) }
    }

    /// For people.
    var shown: String { document.text(of: members) }

    /// The member has to be these bytes in base64url.
    func expect(_ name: String, equals bytes: [UInt8], of what: String) throws(ConformanceError) {
        let expected = Base64.encode(bytes.span, as: .url)
        guard text(name) == expected else {
            throw ConformanceError(
                "\(what): `\(name)` is \(expected).", observed: "it is \(members[name]?.string ?? "missing")")
        }
    }
}

/// A port of the client, asked over its driver to do one thing after the other. Source: docs/conformance.md.
final class ClientPort {
    /// What an action came to.
    enum Reply {
        case done(PortResult)
        /// It failed, with the port's code, and what the port says of it.
        case failed(code: String, detail: String)
    }

    /// Seconds that an action may take.
    private static let patience: Int64 = 60

    private let process: PortProcess
    /// What it calls itself.
    private(set) var name = "the port"
    /// The optional parts that it says it has.
    private(set) var features: Set<String> = []

    /// Starts the driver, and sets it up.
    init(_ words: [String], setup: JSONValue, errors: String) throws(ConformanceError) {
        do {
            process = try PortProcess(words, errors: errors)
        } catch {
            throw .notStaged(error.description)
        }
        let answer = try done("set-up", with: setup)
        name = answer.text("port")
        features = Set((answer.members["features"]?.elements ?? []).compactMap(\.string))
    }

    /// Ends the process as a crash would.
    func crash() { process.end() }

    /// Asks for an action. `members` is an object.
    func act(_ action: String, with members: JSONValue = [:]) throws(ConformanceError) -> Reply {
        guard case .object(let list) = members else {
            throw .notStaged("\(action): members that are no object")
        }
        let line = JSONValue.object([(name: "do", value: .string(action))] + list).text
        guard let said = process.exchange(line, within: ClientPort.patience) else {
            throw ConformanceError(
                "The driver answers `\(action)` with one line within \(ClientPort.patience) s.",
                observed: "no line came; on standard error: \(process.errorOutput)")
        }
        let document: JSONDocument
        do {
            document = try JSONReader.read(Array(said.utf8))
        } catch {
            throw ConformanceError(
                "The driver answers `\(action)` with a JSON object on one line.",
                observed: String(said.prefix(200)))
        }
        if let error = document.root["error"] {
            return .failed(code: error["code"]?.string ?? "", detail: error["detail"]?.string ?? "")
        }
        if document.root["unsupported"] != nil { throw .notImplemented("`\(action)`") }
        guard let members = document.root["ok"] else {
            throw ConformanceError(
                "The driver's answer to `\(action)` has the member `ok`, `error` or `unsupported`.",
                observed: String(said.prefix(200)))
        }
        return .done(PortResult(document: document, members: members))
    }

    /// The same for what has to succeed: the members of `ok`.
    @discardableResult
    func done(_ action: String, with members: JSONValue = [:]) throws(ConformanceError) -> PortResult {
        switch try act(action, with: members) {
        case .done(let answer): return answer
        case .failed(let code, let detail):
            throw ConformanceError("`\(action)` succeeds.", observed: "the port reports `\(code)`: \(detail)")
        }
    }
}
