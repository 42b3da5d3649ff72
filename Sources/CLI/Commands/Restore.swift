import CountersignAuthority
import CountersignSQL
import CountersignSeal
import CountersignServer
import CountersignWire

extension Command {
    static let restore = Command(
        words: ["restore"], summary: "make a deployment from a backup, in an empty data folder",
        positionals: [Positional(name: "FILE")],
        options: [
            .value(
                "key", placeholder: "FILE",
                meaning: "the secret key, of a backup that was made with --recipient"),
            .value(
                "master-key", placeholder: "FILE",
                meaning: "the deployment's master key, unless the backup has it; it becomes DIR/master.key"),
            .value(
                "master-key-id", placeholder: "HEX",
                meaning: "the id of the master key as `backup` printed it; needed if the backup has the key"),
            .value(
                "erasures-from", placeholder: "DIR",
                meaning: "the former data folder: what was erased, locked, removed or retired there is again"
            ),
            .data, .json,
        ],
        notes: """
            First verifies the whole backup, and writes nothing if it was altered, cut off, or belongs \
            to another key. A master key that is in the backup was chosen by whoever made it, so \
            --master-key-id must name it. Then all sessions are ended, upload tickets, reset codes and \
            known devices removed, signatures made up to a window from now refused (5 minutes without \
            --erasures-from), and requests with an Idempotency-Key refused for a day, because nothing \
            is known of what happened since the backup. The superuser restores only to a folder that \
            nobody else can write to: run it as the gateway's user. \
            docs/operate/backup.md tells what else to do. A master key that the process is given \
            (COUNTERSIGN_MASTER_KEY, or a credential) is used, too, and not written to the folder.
            """
    ) { (run) throws(OperationalError) in
        var keys = BackupKeys()
        if let path = run.arguments.value("key") { keys.secretKey = (try BackupSecretKey(file: path), path) }
        if let path = run.arguments.value("master-key") {
            keys.masterKey = (try MasterKey.read(file: path), path)
        } else if let found = try MasterKeySource.find(in: run.environment.variables) {
            keys.masterKey = found
            keys.isMasterKeyGiven = true
        }
        keys.masterKeyID = run.arguments.value("master-key-id")
        let path = try run.required("FILE")
        let line = BackupProgressLine(run.console)
        let outcome = try run.configuration().restore(
            from: path, opening: keys,
            after: run.arguments.value("erasures-from").map { (path) throws(OperationalError) in
                try FormerDeployment(path)
            }, environment: run.environment.variables, now: run.now
        ) { line.show($0) }
        line.end()
        try run.print(outcome.json) { outcome.text }
        return .success
    }
}

extension DeploymentRestoration.Outcome {
    fileprivate var json: JSONValue {
        .object(
            manifest.members + [
                ("sessions_ended", .integer(ended.sessions)),
                ("upload_tickets_removed", .integer(ended.uploadTickets)),
                ("reset_codes_removed", .integer(ended.resetCodes)),
                ("known_devices_removed", .integer(ended.knownDevices)),
                ("repeated", repeated.map(\.json) ?? .null),
                ("floor", .integer(floor)), ("keyed_requests_from", .integer(keyedRequestsFrom)),
                ("master_key_written", .bool(hasWrittenMasterKey)),
            ])
    }

    private var repeatedText: String {
        guard let repeated else { return "what was erased, locked or retired since is as it was" }
        return
            "\(repeated.erased) accounts erased, \(repeated.removed) removed and \(repeated.locked) locked "
            + "again, \(repeated.reservedNames) erased names reserved, \(repeated.retired) releases retired"
    }

    fileprivate var text: String {
        """
        restored as it was at \(TimeText.text(manifest.made)): \(manifest.rows) rows, verified
        master key \(manifest.masterKey)
        \(ended.sessions) sessions ended, \(ended.uploadTickets) upload tickets, \(ended.resetCodes) \
        reset codes and \(ended.knownDevices) known devices removed
        \(repeatedText)
        signatures made up to \(TimeText.text(floor)) are refused, and requests with an Idempotency-Key \
        until \(TimeText.text(keyedRequestsFrom))
        """
    }
}

extension FormerDeployment.Repeated {
    fileprivate var json: JSONValue {
        [
            "erased": .integer(erased), "reserved_names": .integer(reservedNames),
            "locked": .integer(locked), "removed": .integer(removed), "retired": .integer(retired),
        ]
    }
}
