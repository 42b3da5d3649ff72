import CountersignAuthority
import CountersignSQL
import CountersignSeal
import CountersignServer
import CountersignWire

extension Command {
    static let restore = Command(
        words: ["restore"],
        summary: "make a deployment from a backup, or accept a store that was put back to an earlier copy",
        positionals: [Positional(name: "FILE", presence: .optional)],
        options: [
            .flag(
                "in-place",
                meaning:
                    "instead of FILE: the store itself was put back to an earlier copy; ends what may have "
                    + "ended since"),
            .value(
                "lost", placeholder: "SECONDS",
                meaning:
                    "with --in-place, for a standby that was promoted without the changes of the last "
                    + "SECONDS: ends only what these changes concern"),
            .value(
                "changes-from", placeholder: "DIR[,DIR...]",
                meaning: "with --lost: the data folders of all other nodes, or copies of them"),
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
                "erasures-from", placeholder: "DIR|URL",
                meaning:
                    "the former data folder or database: what was erased, locked, removed, retired or taken "
                    + "back there is again"),
            .flag(
                "confirm-clock",
                meaning: "you have compared the machine's clock with another one, and it is right"),
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
            With --in-place the same is done to the store that --store names, once PostgreSQL's tools have \
            restored it, or its file was copied back. All gateways must be stopped. \
            With --lost as well, nothing is changed unless the data folders have all changes that the \
            database lacks. \
            docs/operate/backup.md and docs/operate/postgresql-backup.md tell what else to do. A master key \
            that the process is given \
            (COUNTERSIGN_MASTER_KEY, or a credential) is used, too, and not written to the folder.
            """
    ) { (run) throws(OperationalError) in
        let former = try run.arguments.value("erasures-from").map { (text) throws(OperationalError) in
            try FormerDeployment(text)
        }
        if run.arguments.has("in-place") {
            try restoreInPlace(run, after: former)
        } else {
            try restoreBackup(run, after: former)
        }
        return .success
    }

    private static func restoreInPlace(
        _ run: Invocation, after former: FormerDeployment?
    ) throws(OperationalError) {
        let others = ["key", "master-key", "master-key-id"].filter { run.arguments.value($0) != nil }
        guard run.arguments.positional("FILE") == nil, others.isEmpty else {
            throw OperationalError(
                .usage,
                message:
                    "--in-place: expected no FILE and no key; it is for the store itself, which was put back "
                    + "to an earlier copy")
        }
        let folders = run.arguments.value("changes-from")?.split(separator: ",").map(String.init) ?? []
        let loss = try run.arguments.value("lost").map { (text) throws(OperationalError) in
            guard let seconds = Int64(text), (1...86_400).contains(seconds) else {
                throw OperationalError(
                    .usage, message: "--lost: `\(text)`; expected a whole number of seconds, 1 to 86400")
            }
            return InPlaceRestoration.Loss(seconds: seconds, folders: folders)
        }
        guard folders.isEmpty || loss != nil else {
            throw OperationalError(.usage, message: "--changes-from: expected --lost with it")
        }
        let outcome = try run.configuration().restoreInPlace(
            after: former, losing: loss, environment: run.environment.variables, at: clock(of: run))
        try run.print(outcome.json) { outcome.text }
    }

    private static func clock(of run: Invocation) -> RestorationClock {
        RestorationClock(
            now: run.now, confirmation: run.arguments.has("confirm-clock") ? .given : .none)
    }

    private static func restoreBackup(
        _ run: Invocation, after former: FormerDeployment?
    ) throws(OperationalError) {
        guard run.arguments.value("lost") == nil, run.arguments.value("changes-from") == nil else {
            throw OperationalError(
                .usage, message: "--lost and --changes-from: expected --in-place with them")
        }
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
            after: former, environment: run.environment.variables, at: clock(of: run)
        ) { line.show($0) }
        line.end()
        try run.print(outcome.json) { outcome.text }
    }
}

extension InPlaceRestoration.Outcome {
    fileprivate var json: JSONValue {
        .object(
            [(name: "head", value: .string(head.text))] + ended.members + [
                ("lost_changes", lost.map { .integer(Int64($0.count)) } ?? .null),
                ("repeated", repeated.map(\.json) ?? .null),
                ("keyed_requests_from", .integer(keyedRequestsFrom)),
            ])
    }

    fileprivate var text: String {
        """
        accepted the store as it was at record \(head.number) of its audit log, verified
        \(lost.map { "found the \($0.count) changes that it lacks\n" } ?? "")\
        \(ended.text)
        \(FormerDeployment.Repeated.text(repeated))
        the next start refuses signatures made up to a window after it, and requests with an \
        Idempotency-Key are refused until \(TimeText.text(keyedRequestsFrom))
        """
    }
}

extension StoreRestoration.Ended {
    fileprivate var members: [(name: String, value: JSONValue)] {
        [
            ("sessions_ended", .integer(sessions)), ("upload_tickets_removed", .integer(uploadTickets)),
            ("reset_codes_removed", .integer(resetCodes)), ("known_devices_removed", .integer(knownDevices)),
        ]
    }

    fileprivate var text: String {
        "\(sessions) sessions ended, \(uploadTickets) upload tickets, \(resetCodes) reset codes and "
            + "\(knownDevices) known devices removed"
    }
}

extension DeploymentRestoration.Outcome {
    fileprivate var json: JSONValue {
        .object(
            manifest.members + ended.members + [
                ("repeated", repeated.map(\.json) ?? .null),
                ("floor", .integer(floor)), ("keyed_requests_from", .integer(keyedRequestsFrom)),
                ("master_key_written", .bool(hasWrittenMasterKey)),
            ])
    }

    fileprivate var text: String {
        """
        restored as it was at \(TimeText.text(manifest.made)): \(manifest.rows) rows, verified
        master key \(manifest.masterKey)
        \(ended.text)
        \(FormerDeployment.Repeated.text(repeated))
        signatures made up to \(TimeText.text(floor)) are refused, and requests with an Idempotency-Key \
        until \(TimeText.text(keyedRequestsFrom))
        """
    }
}

extension FormerDeployment.Repeated {
    fileprivate static func text(_ repeated: FormerDeployment.Repeated?) -> String {
        guard let repeated else { return "what was erased, locked or retired since is as it was" }
        return
            "\(repeated.erased) accounts erased, \(repeated.removed) removed and \(repeated.locked) locked "
            + "again, \(repeated.userIDs) user ids changed, \(repeated.verifications) verifications taken "
            + "back, \(repeated.reservedNames) erased names reserved, \(repeated.retired) releases retired, "
            + "\(repeated.webhooks) webhooks removed"
    }

    fileprivate var json: JSONValue {
        [
            "erased": .integer(erased), "reserved_names": .integer(reservedNames),
            "locked": .integer(locked), "removed": .integer(removed), "retired": .integer(retired),
            "user_ids": .integer(userIDs), "verifications": .integer(verifications),
            "webhooks": .integer(webhooks),
        ]
    }
}
