import CountersignAuthority
import CountersignLab
import CountersignMemory
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The authority and gateway as a process of its own, on a data folder of its own, with a backend that counts
/// requests.
final class TestDeployment: Sendable {
    /// Apps that differ in what cases need.
    enum App: String, Sendable, CaseIterable {
        case ordinary = "conformance"
        /// Tokens live for four seconds: for ports that refresh only when one has run out.
        case shortLived = "conformance-short"
        /// Its version is retired by a case.
        case retired = "conformance-retired"
    }

    /// What an app is built with, as `release add` prints it.
    struct Release: Sendable {
        let keyID: String
        /// base64url.
        let secret: String
        /// The public half, base64url.
        let authorityKey: String
        /// The same of the key that the authority rotates to.
        let nextAuthorityKey: String
    }

    let backend: CountingBackend
    let releases: [App: Release]
    /// Where it listens, on 127.0.0.1.
    let port: UInt16
    private let binary: CountersignBinary
    private let data: String
    private let process: ChildProcess

    /// Starts it. `authority` is what clients call it: that of the front.
    init(_ binary: CountersignBinary, folder: String, authority: String) throws(LabError) {
        self.binary = binary
        data = "\(folder)/data"
        backend = try CountingBackend()
        var releases: [App: Release] = [:]
        for app in App.allCases { releases[app] = try TestDeployment.makeApp(app, with: binary, data: data) }
        self.releases = releases
        port = try Ports.free()
        let errors = "\(folder)/gateway.log"
        process = try binary.start(
            [
                "serve", "--data", data, "--listen", "127.0.0.1:\(port)", "--admin", "off", "--workers", "1",
                "--tls",
                "off", "--authority", authority, "--upstream", "http://127.0.0.1:\(backend.port)", "--log",
                "\(folder)/events.jsonl",
                // All ports call from one address.
                "--login-address", "100000/1s", "--login-work", "100000/1s",
            ], errors: errors)
        guard let line = process.nextLine(within: 30), line.hasPrefix("listening on ") else {
            process.end(9)
            let said = (try? Files.read(errors)).map { String(decoding: $0.suffix(400), as: UTF8.self) } ?? ""
            throw LabError("countersign serve does not listen: \(said)")
        }
    }

    private static func makeApp(_ app: App, with binary: CountersignBinary, data: String) throws(LabError)
        -> Release
    {
        let name = app.rawValue
        try binary.runBlocking(["app", "add", name, "--slots", "single"], data: data)
        var policy = ["app", "policy", name, "--set", "registration=open", "--set", "debug=on"]
        if app == .shortLived { policy += ["--set", "token-lifetime=4s"] }
        try binary.runBlocking(policy, data: data)
        try binary.runBlocking(["route", "set", name, "/device", "--require", "device"], data: data)
        let printed = try binary.runBlocking(
            ["release", "add", name, "--platform", "other", "--version", "1.0", "--json"], data: data)
        guard let document = try? JSONReader.read(printed), let keyID = document.root["key_id"]?.string,
            let secret = document.root["secret"]?.string, let key = document.root["authority_key"]?.string,
            let next = document.root["next_authority_key"]?.string
        else { throw LabError("release add: expected key_id, secret, authority_key and next_authority_key") }
        return Release(keyID: keyID, secret: secret, authorityKey: key, nextAuthorityKey: next)
    }

    /// Runs a command as the deployment's operator.
    func runCommand(_ words: [String]) throws(LabError) { try binary.runBlocking(words, data: data) }

    /// The key that signs the authority's answers: for answers that are rightly signed and must not be
    /// believed all the same.
    func answerKey() throws(LabError) -> Credentials { try answerKeys().current }

    /// The same, and the key that the authority rotates to.
    func answerKeys() throws(LabError) -> (current: Credentials, next: Credentials) {
        do {
            let folder = try DataFolder(data, absence: .fail)
            let store = StorePlace.sqlite(path: "\(data)/countersign.db").open()
            defer { store.close() }
            let seeds = try Deployment(folder: folder, store: store, environment: [:]).answerSeeds()
            return (try Forgery.ed25519(seeds.current), try Forgery.ed25519(seeds.next))
        } catch {
            throw LabError(error.message)
        }
    }

    func stop() {
        process.end()
        backend.stop()
    }
}

/// A backend that says how often a target was called, by which method and for which account.
final class CountingBackend: Sendable {
    private final class Counts: Sendable {
        let byTarget = Locked<[String: Int]>([:])
    }

    private let counts: Counts
    private let server: LocalServer

    /// Listens from now on.
    init() throws(LabError) {
        let counts = Counts()
        self.counts = counts
        server = try LocalServer { (request) throws(LabError) in
            let count = counts.byTarget.with { counts in
                counts[request.target, default: 0] += 1
                return counts[request.target] ?? 0
            }
            return RawResponse(json: [
                "method": .string(request.method), "target": .string(request.target),
                "count": .integer(Int64(count)),
                "account": .optional(request.fields["countersign-account"]),
                "body": .string(Base64.encode(request.body.span, as: .url)),
            ])
        }
    }

    var port: UInt16 { server.port }

    func count(of target: String) -> Int { counts.byTarget.with { $0[target] ?? 0 } }

    func stop() { server.stop() }
}
