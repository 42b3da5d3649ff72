import CountersignAuthority
import CountersignSQL
import CountersignWire
import Glibc

/// One thing that was looked at, and how it is.
package struct DoctorFinding: Sendable, Equatable {
    package enum Verdict: String, Sendable {
        case well
        /// It works, and an operator should know.
        case warning
        /// It does not work, or not safely.
        case error
    }

    /// What was looked at: `clock`, `disk`, `permissions`, …
    package var topic: Topic
    package var verdict: Verdict
    /// The thing itself and how it is, in one sentence. Contains no secret.
    package var message: String
    /// How it should be; nil if it is so.
    package var expected: String?
    /// The command that corrects the finding; nil if no command does.
    package var command: String?

    package enum Topic: String, Sendable, CaseIterable {
        case settings, clock, disk, permissions
        case masterKey = "master-key"
        case store, nodes, replay, upstream, certificate, listener, policy, webhooks, pins
    }
}

/// Looks at a deployment and what it depends on, and mends nothing. The store is opened as every command
/// opens it, which may make the small files that belong to it, but it is not migrated or made.
package struct Doctor {
    let settings: Configuration.ReadResult
    let environment: [String: String]
    /// Whole Unix seconds.
    let now: Int64
    private(set) var findings: [DoctorFinding] = []

    var configuration: Configuration { settings.configuration }

    package init(_ settings: Configuration.ReadResult, environment: [String: String], now: Int64) {
        (self.settings, self.environment, self.now) = (settings, environment, now)
    }

    package mutating func run() -> [DoctorFinding] {
        checkSettings()
        checkDisk()
        checkPermissions()
        let deployment = openDeployment()
        if let deployment {
            checkStore(deployment)
            checkNodes(of: deployment)
            checkReplay(of: deployment)
            checkPolicies(of: deployment)
            checkWebhooks(of: deployment)
            checkPins(of: deployment)
        }
        let date = checkUpstream()
        checkClock(deployment, upstreamDate: date)
        checkCertificate()
        checkListener()
        deployment?.store.close()
        return findings.sorted { left, right in
            let order = DoctorFinding.Topic.allCases
            return (order.firstIndex(of: left.topic) ?? 0) < (order.firstIndex(of: right.topic) ?? 0)
        }
    }

    mutating func add(
        _ topic: DoctorFinding.Topic, verdict: DoctorFinding.Verdict = .well, message: String,
        expected: String? = nil, command: String? = nil
    ) {
        findings.append(
            DoctorFinding(
                topic: topic, verdict: verdict, message: message, expected: expected, command: command))
    }

    /// A command as it is typed in a shell: words with other characters than usual are quoted.
    static func command(_ words: String...) -> String { words.map(quoted).joined(separator: " ") }

    /// A command of this program about this data folder.
    func ownCommand(_ words: String...) -> String {
        (["countersign"] + words + ["--data", configuration.data]).map(Doctor.quoted).joined(separator: " ")
    }

    private static func quoted(_ word: String) -> String {
        let isPlain =
            !word.isEmpty
            && word.utf8.allSatisfy { byte in
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
                    || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-_./:=,+@%[]".utf8.contains(byte)
            }
        return isPlain ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }

    /// What makes the deployment again in another folder: one that has files is not restored to.
    private var restoreCommand: String {
        let data = configuration.data
        return "countersign restore FILE "
            + Doctor.command("--master-key", "\(data)/master.key", "--data", "\(data).restored")
    }

    private mutating func checkSettings() {
        let problems = settings.check(environment: environment)
        for problem in problems {
            add(
                .settings, verdict: problem.severity == .error ? .error : .warning, message: problem.text,
                expected: problem.expected, command: "countersign serve --check-config")
        }
        if problems.isEmpty { add(.settings, message: "the settings are valid") }
    }

    /// The deployment. Nil, after recording a finding, if the store does not exist or if opening it would
    /// change it.
    private mutating func openDeployment() -> Deployment? {
        let data = configuration.data
        if let file = configuration.store.file, access(file, F_OK) != 0 {
            guard errno == ENOENT else {
                add(
                    .store, verdict: .error,
                    message: "\(file): cannot be looked at: \(String(cString: strerror(errno)))",
                    expected: "a store that this user may read")
                return nil
            }
            // Beside its key, there was one.
            let isLost = ["master.key", "store-begun"].contains { access("\(data)/\($0)", F_OK) == 0 }
            add(
                .store, verdict: .error,
                message: "\(file): no store there"
                    + (isLost ? ", and the folder is that of a deployment" : ""),
                expected: "the store of a deployment",
                command: isLost ? restoreCommand : ownCommand("app", "add") + " NAME")
            return nil
        }
        do throws(OperationalError) {
            let plan = try configuration.schemaPlan(environment: environment)
            guard plan.pending.isEmpty else {
                add(
                    .store, verdict: .error,
                    message: "the store is of level \(plan.level) of the schema, and was not looked into",
                    expected: "level \(plan.target)", command: ownCommand("migrate"))
                return nil
            }
            let deployment = try configuration.openDeployment(absence: .fail, environment: environment)
            // Of PostgreSQL's pages, PostgreSQL itself knows.
            let pages = configuration.store.file == nil ? "" : ", every page is sound"
            add(.store, message: "the schema is of level \(plan.level)\(pages)")
            return deployment
        } catch {
            let isKey = error.message.contains("master key") || error.message.contains("master.key")
            add(
                isKey ? .masterKey : .store, verdict: .error, message: error.message,
                expected: isKey ? "the key that the store was sealed with" : "a store that opens",
                command: StoreDamage.isNamed(by: error) && configuration.store.file != nil
                    ? restoreCommand : nil)
            return nil
        }
    }

    private mutating func checkStore(_ deployment: Deployment) {
        let keys = deployment.masterKeyState
        if keys.isBeingReplaced {
            add(
                .masterKey, verdict: .warning, message: "master key \(keys.id) is being replaced",
                expected: "a rotation that has ended", command: ownCommand("rotate-master-key"))
        } else {
            add(.masterKey, message: "master key \(keys.id) is the store's")
        }
        do throws(OperationalError) {
            let rows = try deployment.verifyRows()
            let audit = try deployment.verifyAudit()
            for finding in rows.findings.prefix(10) {
                add(
                    .store, verdict: .error, message: finding.text, expected: "rows that nobody has altered",
                    command: ownCommand("audit", "verify"))
            }
            if !audit.findings.isEmpty {
                add(
                    .store, verdict: .error, message: "the audit log does not verify",
                    expected: "records that nobody has altered", command: ownCommand("audit", "verify"))
            }
            if rows.findings.isEmpty, audit.findings.isEmpty {
                add(.store, message: "\(rows.rows) rows and \(audit.records) records are whole")
            }
        } catch {
            add(
                .store, verdict: .error, message: error.message, expected: "a store that can be read",
                command: ownCommand("audit", "verify"))
        }
    }
}
