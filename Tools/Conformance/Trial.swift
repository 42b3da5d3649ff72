import CountersignLab
import CountersignSchemes
import CountersignTestServer
import CountersignTrust
import CountersignWire
import Glibc

/// One case's run: ports of its own, an account of its own, and the deployment and the front that all cases
/// share.
final class Trial {
    let deployment: TestDeployment
    let front: InterceptionProxy
    let certificates: TestCertificates
    let manifests: ManifestSigner
    /// The driver's words.
    private let command: [String]
    /// For the states of the ports and their standard errors.
    private let folder: String
    let account: String
    let password: String
    /// Also the number of the state of the port that was set up last with one of its own.
    private(set) var portCount = 0

    init(_ stage: ConformanceEnvironment, command: [String], folder: String) throws(LabError) {
        (deployment, front) = (stage.deployment, stage.front)
        (certificates, manifests) = (stage.certificates, stage.manifests)
        (self.command, self.folder) = (command, folder)
        let random = (0..<8).map { _ in String(UInt8.random(in: .min ... .max), radix: 16) }.joined()
        account = "account-\(random)"
        password = "Password-\(String(random.reversed()))-Z"
        try Files.makeFolder(folder)
    }

    /// The path of a route of the authority's own.
    static func own(_ route: String) -> String { "/countersign/v1\(route)" }

    // MARK: Ports

    /// A port that is set up: with a state of its own, or that of a port that was ended.
    func port(
        of app: TestDeployment.App = .ordinary, clockOffset: Int = 0, state: Int? = nil
    ) throws(ConformanceError) -> ClientPort {
        if state == nil { portCount += 1 }
        let state = "\(folder)/\(state ?? portCount)"
        do { try Files.makeFolder(state) } catch { throw .notStaged(error.description) }
        guard let release = deployment.releases[app] else {
            throw .notStaged("no release of \(app.rawValue)")
        }
        return try ClientPort(
            command,
            setup: [
                "url": .string("https://\(TestCertificates.host):\(front.port)"),
                "prefix": .string(Trial.own("")),
                "app": .string(app.rawValue), "key_id": .string(release.keyID),
                "secret": .string(release.secret),
                "authority_key": .string(release.authorityKey),
                "next_authority_key": .string(release.nextAuthorityKey),
                "pins": [.string(certificates.current.certificate.pin.description)],
                "backup_pins": [.string(certificates.backup.certificate.pin.description)],
                "manifest_key": .bytes(manifests.publicKey),
                "pins_version": .integer(Int64(TestManifest.builtInVersion)),
                "state": .string(state), "clock_offset": .integer(Int64(clockOffset)),
                "device_class": "desktop",
                "device_name": "conformance",
            ], errors: "\(folder)/errors")
    }

    /// A port with an account that is signed in; what was sent for that is forgotten.
    func signedInPort(of app: TestDeployment.App = .ordinary) throws(ConformanceError) -> ClientPort {
        let port = try port(of: app)
        try signUp(port)
        try logIn(port)
        front.clearExchanges()
        return port
    }

    var credentials: JSONValue { ["account": .string(account), "password": .string(password)] }

    @discardableResult
    func signUp(_ port: ClientPort) throws(ConformanceError) -> PortResult {
        try explained { () throws(ConformanceError) in try port.done("sign-up", with: credentials) }
    }

    @discardableResult
    func logIn(_ port: ClientPort) throws(ConformanceError) -> PortResult {
        try explained { () throws(ConformanceError) in try port.done("log-in", with: credentials) }
    }

    /// A call that the backend has to answer with 200.
    @discardableResult
    func call(
        _ port: ClientPort, method: String = "GET", target: String = "/hello", members: JSONValue = [:]
    ) throws(ConformanceError) -> PortResult {
        let answer = try explained { () throws(ConformanceError) in
            try port.done("call", with: Trial.callMembers(method, target: target, members: members))
        }
        let status = answer.number("status")
        guard status == 200 else {
            throw ConformanceError(
                "The port reports status 200 for \(method) \(target).",
                observed: "it reports \(status.map { String($0) } ?? "none")\(refusals)")
        }
        return answer
    }

    /// The same, whatever comes of it.
    @discardableResult
    func tryCall(
        _ port: ClientPort, method: String = "GET", target: String = "/hello", members: JSONValue = [:]
    ) throws(ConformanceError) -> ClientPort.Reply {
        try port.act("call", with: Trial.callMembers(method, target: target, members: members))
    }

    private static func callMembers(_ method: String, target: String, members: JSONValue) -> JSONValue {
        guard case .object(let list) = members else { return members }
        return .object(
            [(name: "method", value: .string(method)), (name: "target", value: .string(target))] + list)
    }

    // MARK: What is expected

    func expect(_ holds: Bool, that expectation: String, observed: @autoclosure () -> String)
        throws(ConformanceError)
    {
        guard holds else { throw ConformanceError(expectation, observed: observed()) }
    }

    /// The port reports a failure, with that code where one is given.
    func expectFailure(
        _ reply: ClientPort.Reply, code: String? = nil, that expectation: String
    ) throws(ConformanceError) {
        switch reply {
        case .done: throw ConformanceError(expectation, observed: "the port reports success\(refusals)")
        case .failed(let actual, let detail):
            guard let code, actual != code else { return }
            throw ConformanceError(
                "\(expectation) The code is `\(code)`.",
                observed: "the port reports `\(actual)`: \(detail)\(refusals)")
        }
    }

    /// What the port says of its session: `signed-in`, `signed-out` or `update-required`.
    func expectState(_ port: ClientPort, is state: String, that expectation: String) throws(ConformanceError)
    {
        let answer = try port.done("status")
        let (actual, reason) = (answer.text("state"), answer.text("reason"))
        try expect(
            actual == state, that: "\(expectation) `status` reports the state `\(state)`.",
            observed: "it reports `\(actual)`\(reason.isEmpty ? "" : ", reason \(reason)")\(refusals)")
    }

    /// A rule of the front's that no request has met says that the port did not do what the case is about.
    func expectRulesUsed() throws(ConformanceError) {
        if let unused = front.unusedRule {
            throw ConformanceError("The port sends \(unused).", observed: "it sends \(sent)\(refusals)")
        }
    }

    // MARK: What was sent

    /// The requests of that method and path since the front forgot, the oldest first.
    func requests(_ method: String, path: String) -> [RawRequest] {
        front.exchanges.map(\.request).filter { $0.method == method && $0.path == path }
    }

    var sent: String {
        let list = front.exchanges.map { "\($0.request.method) \($0.request.path)" }
        return list.isEmpty ? "nothing" : list.suffix(12).joined(separator: ", ")
    }

    /// What the gateway refused last, and why.
    var refusals: String {
        let refused = front.exchanges.last { $0.answer?.refusal != nil }
        guard let refused, let why = refused.answer?.refusal else { return "" }
        return "; \(refused.request.method) \(refused.request.path) was refused: \(why)"
    }

    /// Adds to a failure what the gateway said to the port.
    private func explained<Value>(_ body: () throws(ConformanceError) -> Value) throws(ConformanceError)
        -> Value
    {
        do {
            return try body()
        } catch {
            guard error.kind == .deviation, !refusals.isEmpty else { throw error }
            throw ConformanceError(error.expectation, observed: error.observation + refusals)
        }
    }

    /// Runs a command as the deployment's operator.
    func runCommand(_ words: [String]) throws(ConformanceError) {
        do {
            try deployment.runCommand(words)
        } catch {
            throw .notStaged(error.description)
        }
    }

    func show(_ certificate: IssuedCertificate) throws(ConformanceError) {
        do {
            try front.show(certificate)
        } catch {
            throw .notStaged(error.description)
        }
    }

    /// The key that signs the authority's answers.
    func answerKey() throws(ConformanceError) -> Credentials {
        do {
            return try deployment.answerKey()
        } catch {
            throw .notStaged(error.description)
        }
    }

    /// The key that the authority rotates to.
    func nextAnswerKey() throws(ConformanceError) -> Credentials {
        do {
            return try deployment.answerKeys().next
        } catch {
            throw .notStaged(error.description)
        }
    }

    /// Whole Unix seconds.
    var now: Int64 { Int64(time(nil)) }
}
