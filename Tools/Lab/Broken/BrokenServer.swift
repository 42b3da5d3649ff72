import CountersignWire

/// A fault that our server can be started with, and the attack that has to find it: this proves that the
/// attack can succeed. In the given row the attack fails without the fault.
package struct BrokenServer: Sendable {
    /// The name that `countersign-breakable serve --sabotage` accepts.
    package let fault: String
    package let row: RowName
    package let attack: AttackName
    /// A short description of the fault.
    package let sentence: String

    init(_ fault: String, sentence: String, on row: RowName, attack: AttackName) {
        (self.fault, self.sentence, self.row, self.attack) = (fault, sentence, row, attack)
    }
}

extension BrokenServer {
    /// Faults of a server over PostgreSQL, which no stage of the lab has: they show only where several
    /// nodes share a database. `Tests/Interop/test_nodes.py` and `script/chaos` show them.
    static let faultsOfNodes: Set<String> = [
        "acknowledged-before-commit", "notify-lost", "schema-expanded", "schema-contracted",
    ]

    /// In the order of the report.
    package static let all: [BrokenServer] = [
        BrokenServer(
            "nonce-unchecked", sentence: "nothing is remembered of what was let in", on: unkeyed,
            attack: "replay-at-once"),
        BrokenServer(
            "nonce-before-signature", sentence: "a nonce is spent before its signature is verified",
            on: open, attack: "burn-nonce"
        ),
        BrokenServer(
            "path-from-header", sentence: "the path that is verified comes from a field", on: open,
            attack: "tamper-path"),
        BrokenServer(
            "mac-compared-byte-by-byte", sentence: "a comparison ends at the first difference", on: open,
            attack: "mac-timing"),
        BrokenServer(
            "replay-in-memory-only", sentence: "a restart forgets what was let in", on: unkeyed,
            attack: "replay-after-restart"),
        BrokenServer(
            "replay-fails-open", sentence: "what the memory cannot vouch for is let in", on: unkeyed,
            attack: "replay-lost-file"),
        BrokenServer(
            "json-first-wins", sentence: "of two JSON members the first is verified",
            on: "auth-v4+gateway",
            attack: "tamper-ambiguity"),
        BrokenServer(
            "host-unchecked", sentence: "any host name is taken for its own", on: open,
            attack: "tamper-host"),
        BrokenServer(
            "epoch-unchecked", sentence: "roots from before a refresh are good for ever", on: open,
            attack: "old-root"),
        BrokenServer(
            "body-unverified", sentence: "the digest is not compared with the body", on: open,
            attack: "tamper-body"),
        BrokenServer(
            "token-is-bearer", sentence: "a session's token is enough", on: open, attack: "stolen-token"),
        // The row whose login does little besides the slow hash: else the noise of a busy machine would
        // hide the difference.
        BrokenServer(
            "unknown-account-fast", sentence: "unknown names are answered at once", on: "md5+gateway",
            attack: "enumeration-time"),
        BrokenServer(
            "unknown-account-told", sentence: "unknown names are answered otherwise",
            on: "message-signatures-password",
            attack: "enumeration-content"),
        BrokenServer(
            "guesses-unlimited", sentence: "guesses are not counted", on: open, attack: "login-storm"),
        BrokenServer(
            "retired-accepted", sentence: "a retired version is let in", on: open,
            attack: "retired-version"),
        BrokenServer(
            "legacy-always-on", sentence: "schemes are taken that no policy names", on: "auth-v1+gateway",
            attack: "downgrade"),
        BrokenServer(
            "once-forgotten", sentence: "a second copy of a wish is done again", on: open,
            attack: "retry-trap"),
        BrokenServer(
            "identity-from-client", sentence: "the caller states its own identity", on: open,
            attack: "tamper-header"),
        BrokenServer(
            "identity-from-client", sentence: "a stranger on an open route is told by the caller",
            on: "open-route+gateway",
            attack: "forged-identity"),
        BrokenServer(
            "kept-in-clear", sentence: "what is kept of sessions is not sealed", on: open,
            attack: "database-forge"),
    ]

    /// A row where only the server can stop the attacker: ours, without TLS.
    private static let open: RowName = "countersign-no-tls"
    /// A row without idempotency keys, which could stop a second copy instead of the replay guard.
    private static let unkeyed: RowName = "form-md5+gateway"
}

/// The result for one fault.
package struct BrokenServerResult: Sendable {
    package enum Verdict: Sendable {
        /// The attack succeeds with the fault and fails without it.
        case caught
        /// The attack fails with the fault.
        case missed
        /// The attack succeeds without the fault, too, and so shows nothing about it.
        case meaningless
        /// One of the two attacks could not be staged.
        case unstaged
    }

    package let server: BrokenServer
    package let verdict: Verdict
    /// What the attacker gained, or why the result shows nothing.
    package let how: String

    init(_ server: BrokenServer, broken: Result<Cell, LabError>, whole: Result<Cell, LabError>) {
        self.server = server
        switch (broken, whole) {
        case (.failure(let fault), _): (verdict, how) = (.unstaged, fault.description)
        case (_, .failure(let fault)): (verdict, how) = (.unstaged, "without the fault: \(fault)")
        case (.success(let cell), .success(let other)):
            switch (cell.verdict, other.verdict) {
            case (.fell, .held): (verdict, how) = (.caught, cell.how)
            case (.fell, _):
                (verdict, how) = (
                    .meaningless, "without the fault it is \(other.verdict.rawValue): \(other.how)"
                )
            case (_, _): (verdict, how) = (.missed, cell.how)
            }
        }
    }
}

extension [BrokenServerResult] {
    /// A line for the report: fault, attack, explanation.
    package var text: String {
        let width = map(\.server.fault.count).max() ?? 0
        let lines = map { finding in
            let server = finding.server
            let fault = server.fault + String(repeating: " ", count: width - server.fault.count)
            return "\(finding.verdict.mark) \(fault)  \(server.attack) on \(server.row): \(finding.how)"
        }
        let caught = count { $0.verdict == .caught }
        return (lines + ["\(caught) of \(count) broken servers caught"]).joined(separator: "\n")
    }

    /// `{"broken":[{"fault":…,"sentence":…,"scheme":…,"attack":…,"verdict":"caught","how":…}]}`
    package var json: JSONValue {
        .object([
            (
                "broken",
                .array(
                    map { finding in
                        .object([
                            ("fault", .string(finding.server.fault)),
                            ("sentence", .string(finding.server.sentence)),
                            ("scheme", .string(finding.server.row.description)),
                            ("attack", .string(finding.server.attack.description)),
                            ("verdict", .string("\(finding.verdict)")), ("how", .string(finding.how)),
                        ])
                    })
            )
        ])
    }
}

extension BrokenServerResult.Verdict {
    fileprivate var mark: String { self == .caught ? "✓" : "✗" }
}

/// Runs the attack of each fault against our server with the fault and without it.
package struct BrokenServerRun: Sendable {
    private let settings: LabSettings
    package let servers: [BrokenServer]

    /// Removes the faults from `settings`.
    package init(settings: LabSettings, servers: [BrokenServer] = BrokenServer.all) {
        self.settings = settings
        self.servers = servers
    }

    /// Throws where the binary has faults for which no attack is listed.
    package func run(
        progress: @escaping @Sendable (LabProgress) -> Void
    ) async throws(LabError) -> [BrokenServerResult] {
        let known = try await settings.binary.faults()
        let unattended = Set(known).subtracting(BrokenServer.all.map(\.fault))
            .subtracting(BrokenServer.faultsOfNodes)
        guard unattended.isEmpty else {
            throw LabError("no attack is named for \(unattended.sorted().joined(separator: ", "))")
        }
        var findings: [BrokenServerResult] = []
        for server in servers {
            // On stages of their own: effects of one attack must not stop the other.
            let whole = await attack(server, settings: settings, progress: progress)
            var faulty = settings
            faulty.sabotage = [server.fault]
            findings.append(
                BrokenServerResult(
                    server, broken: await attack(server, settings: faulty, progress: progress),
                    whole: whole))
        }
        return findings
    }

    private func attack(
        _ server: BrokenServer, settings: LabSettings, progress: @escaping @Sendable (LabProgress) -> Void
    ) async -> Result<Cell, LabError> {
        let rows = RowCatalogue.all.filter { $0.name == server.row }
        let attacks = AttackCatalogue.all.filter { $0.name == server.attack }
        let matrix = await Lab(settings: settings).run(rows: rows, attacks: attacks, progress: progress)
        return matrix.rows.first?.cells[server.attack]
            ?? .failure(LabError("there is no such row or attack"))
    }
}

extension CountersignBinary {
    /// The faults that `serve` supports.
    func faults() async throws(LabError) -> [String] {
        let folder = try Files.makeTemporaryFolder("countersign-lab")
        defer { Files.removeFolder(folder) }
        let listed = try await run(["serve", "--sabotage", "list"], data: "\(folder)/data")
        // The first line is a heading; each other line begins with a fault's name.
        return String(decoding: listed, as: UTF8.self).split(separator: "\n").dropFirst()
            .compactMap { $0.split(separator: " ").first.map(String.init) }
    }
}
