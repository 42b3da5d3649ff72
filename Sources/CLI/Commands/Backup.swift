import CountersignAuthority
import CountersignServer
import CountersignWire

extension Command {
    static let backup = Command(
        words: ["backup"], summary: "copy the deployment to one encrypted file, while it runs or not",
        positionals: [Positional(name: "FILE")],
        options: [
            .value(
                "recipient", placeholder: "FILE",
                meaning: "encrypt it to this public key (countersign backup key), not under the master key"),
            .flag("with-master-key", meaning: "include the master key; only with --recipient"),
            .flag("force", meaning: "replace FILE if it exists"),
            .data, .json,
        ],
        notes: """
            The file has the store as it was at one moment, and the small files of the data folder. It \
            is written under another name, verified, and then renamed. It opens with the master key, or, \
            with --recipient, with the secret key of that pair; `countersign restore` needs the master \
            key in both cases. Keep that apart from the backups: docs/operate/backup.md. Replay entries \
            and keyed requests are not in it. Of a PostgreSQL database, make backups with its own tools.
            """
    ) { (run) throws(OperationalError) in
        var options = DeploymentBackup.Options()
        options.hasMasterKey = run.arguments.has("with-master-key")
        options.replacesFile = run.arguments.has("force")
        if let path = run.arguments.value("recipient") {
            options.recipient = try BackupRecipient(
                file: path, contents: Console.readFile(path, limit: 1 << 16))
        }
        let path = try run.required("FILE")
        let line = BackupProgressLine(run.console)
        let outcome = try run.configuration().backUp(
            to: path, options: options, environment: run.environment.variables
        ) { line.show($0) }
        line.end()
        try run.print(outcome.json(at: path)) { outcome.text(at: path) }
        if let failure = outcome.recordFailure {
            run.console.note(
                "note: the data folder does not name this backup as its last one: \(failure.message)")
        }
        return .success
    }

    static let backupLast = Command(
        words: ["backup", "last"], summary: "say when the last backup was made",
        options: [.data, .json],
        notes: """
            Knows the backups that `countersign backup` has made of this data folder and verified, not
            whether their files are there still, and no copies that other programs make. Exit status 1 if
            the last one is older than a week, or none was made. Of a store in PostgreSQL it says only that
            the database's own tools make its backups.
            """
    ) { (run) throws(OperationalError) in
        let configuration = try run.configuration()
        try DataFolder.requireThere(configuration.data)
        let last = try configuration.lastBackup()
        let age = last.map { max(0, run.now - $0.made) }
        let isOverdue = configuration.hasOwnBackups && (last?.isOverdue(at: run.now) ?? true)
        try run.print([
            "own": .bool(configuration.hasOwnBackups), "made": last.map { .integer($0.made) } ?? .null,
            "age": age.map { .integer($0) } ?? .null, "overdue": .bool(isOverdue),
            "bytes": last.map { .integer($0.bytes) } ?? .null,
            "key": .optional(last?.key), "audit_head": .optional(last?.auditHead),
        ]) {
            guard configuration.hasOwnBackups else {
                return "the store is a PostgreSQL database: its own tools make its backups"
            }
            guard let last, let age else { return "no backup was made" }
            return """
                made \(TimeText.text(last.made)), \(age / 86_400) days and \(age % 86_400 / 3600) hours ago
                \(last.bytes) bytes, verified; it opens with key \(last.key)
                audit log: \(last.auditHead)
                """
        }
        return isOverdue ? .failed : .success
    }

    static let backupKey = Command(
        words: ["backup", "key"], summary: "make a key pair that backups are encrypted to",
        positionals: [Positional(name: "FILE")], options: [.json],
        notes: """
            Writes the secret key to FILE, of mode 0600, and the public key to FILE.pub. The machine \
            that makes backups needs the public key alone; keep the secret key elsewhere. Nothing opens \
            the backups without it.
            """
    ) { (run) throws(OperationalError) in
        let path = try run.required("FILE")
        let key = try BackupSecretKey()
        try key.write(to: path)
        let id = key.recipient.id
        try run.print(["key": .string(id), "secret": .string(path), "public": .string("\(path).pub")]) {
            "key \(id): the secret key is in \(path), the public key in \(path).pub"
        }
        return .success
    }
}

/// A line on a terminal with the progress of a backup or a restore; nothing if there is no terminal.
final class BackupProgressLine {
    private let console: Console
    private var shown = ""

    init(_ console: Console) { self.console = console }

    func show(_ stage: DeploymentBackup.Stage) {
        guard console.isErrorTerminal else { return }
        let text =
            switch stage {
            case .copied(let bytes, let total): "\(share(bytes, of: total)) copied"
            case .verifying: "verifying"
            case .written(let bytes, let total): "\(share(bytes, of: total)) written"
            case .compared(let bytes, let total): "\(share(bytes, of: total)) compared"
            }
        guard text != shown else { return }
        shown = text
        console.replaceLine(text)
    }

    private func share(_ bytes: Int64, of total: Int64) -> String {
        "\((total + 1_048_575) >> 20) MiB: \(total > 0 ? bytes / max(total / 100, 1) : 100) %"
    }

    func end() { if console.isErrorTerminal { console.replaceLine("") } }
}

extension BackupManifest {
    /// For `--json` of `backup` and `restore`.
    var members: [(name: String, value: JSONValue)] {
        [
            ("made", .integer(made)), ("product", .string(product)), ("level", .integer(level)),
            ("master_key", .string(masterKey)), ("audit_head", .string(auditHead.text)),
            ("rows", .integer(rows)),
            ("tables", .object(tables.map { (name: $0.name, value: .integer($0.rows)) })),
            ("files", .strings(files.map(\.name.rawValue))),
            ("database_bytes", .integer(databaseBytes)),
        ]
    }

    var hasMasterKey: Bool { files.contains { $0.name == .masterKey } }
}

extension DeploymentBackup.Outcome {
    fileprivate func json(at path: String) -> JSONValue {
        .object(
            [("file", .string(path)), ("bytes", .integer(bytes)), ("key", .string(key))] + manifest.members)
    }

    fileprivate func text(at path: String) -> String {
        let opening =
            key == manifest.masterKey
            ? "it opens with master key \(key)"
            : "it opens with the secret key of \(key)"
        let reminder =
            manifest.hasMasterKey
            ? "the master key is in it: note its id \(manifest.masterKey) apart, which `restore` asks for"
            : "keep a copy of master key \(manifest.masterKey) apart: nothing is restored without it"
        return """
            \(path): \(manifest.rows) rows, \(bytes) bytes, verified
            \(opening); \(reminder)
            audit log: \(manifest.auditHead.text)
            """
    }
}
