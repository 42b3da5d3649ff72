import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let accountShow = Command(
        words: ["account", "show"], summary: "show one account",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")], options: [.data, .json],
        notes: "What is held in full, sessions and devices among it, is in `countersign account export`."
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let deployment = try run.deployment()
        let held = try deployment.holdings(of: name, in: app)
        let account = held.account
        let guesses = AccountGuesses.read(deployment.folder.accountGuesses)?
            .count(of: name, in: app, at: run.now)
        let live = held.sessions.count { $0.end == nil }
        let codes = held.codes.isEmpty ? "none" : held.codes.map(\.text).joined(separator: "; ")
        try run.print(held.summary(live: live, guesses: guesses)) {
            var rows: [(String, String)] =
                [
                    ("name", account.name.description), ("state", account.stateText),
                    ("user id", account.userID.map(String.init) ?? "none: the backend is told the name"),
                    ("signs in by", account.credential),
                    (
                        "failed logins",
                        guesses.map {
                            "\($0.failed) since \(TimeText.text($0.since)), the last at "
                                + TimeText.text($0.last)
                        } ?? "none in the last day"
                    ), ("since", TimeText.text(account.created)),
                    (
                        "reset codes until",
                        account.resets.map(\.until).max().map { TimeText.text($0) } ?? "none"
                    ),
                    ("verified", held.verified.map { TimeText.text($0) } ?? "no"),
                    ("codes", codes),
                    ("sessions", "\(live) live, \(held.sessions.count - live) ended"),
                    ("known devices", "\(held.devices.count)"), ("upload tickets", "\(held.tickets.count)"),
                    ("idempotent requests", "\(held.requests.count)"),
                    ("in the audit log as", account.pseudonym?.description ?? "no pseudonym: it was erased"),
                ]
            if !held.altered.isEmpty { rows.append(("altered rows, not counted", "\(held.altered.count)")) }
            return rows.map { "\($0.0): \($0.1)" }.joined(separator: "\n")
        }
        run.warn(of: held.altered)
        return .success
    }

    static let accountExport = Command(
        words: ["account", "export"], summary: "print everything held about one person, as JSON",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")], options: [.data],
        notes: """
            Account, sessions, devices, upload tickets, stored responses and the audit log's records. \
            Passwords \
            and keys
            are named and not printed. `altered` lists rows that were left out because they were altered in \
            the database;
            `not_included`, what is held elsewhere. The audit log records the export.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let deployment = try run.deployment()
        let held = try deployment.holdings(of: name, in: app)
        let export = try held.json(of: deployment, at: run.now).prettyText
        try deployment.recordExport(of: name, in: app, at: run.now)
        try run.console.print(export)
        run.warn(of: held.altered)
        return .success
    }

    static let accountErase = Command(
        words: ["account", "erase"], summary: "remove everything held about one person, for good",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .flag("yes", meaning: "do not ask; needed where there is no terminal"),
            .flag(
                "vacuum",
                meaning: "write the database file anew, however large it is, if it still has the name"),
            .data, .json,
        ],
        notes: """
            The name goes from the account, the sessions, the audit log and the files of the data folder; a \
            keyed hash
            keeps it from being taken again, because the backend would take the new account for the erased \
            one. Logs,
            backups and the backend's own data are yours to erase. `account remove` only ends the account \
            and \
            keeps its name.

            Copies of the name may be left in parts of the database file that no row uses. A file up to \
            \(RewriteBound.mostUnasked >> 20) MB is
            then written anew at once. A larger one needs --vacuum, best while the server is stopped: about \
            a second for
            100 MB, in which nothing else is written, and as much memory as the file is large. Status 1 \
            where it is needed.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let deployment = try run.deployment()
        try confirmErasure(of: name, run: run)
        let erasure = try deployment.eraseAccount(
            name, of: app, at: run.now, rewriting: run.arguments.has("vacuum") ? .always : .ifSmall)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description), "erased": true,
            "ended_sessions": .strings(erasure.ended.map(\.description)),
            "absent_from_files": .bool(erasure.files == .absent),
            "needs_vacuum": .bool(erasure.needsVacuum),
        ]
        try run.print(json) {
            erasure.ended.isEmpty ? "erased" : "erased; sessions ended: \(erasure.ended.count)"
        }
        switch erasure.files {
        case .absent: return .success
        case .inRows:
            run.console.note(
                "the same letters stand elsewhere in the database, as in the account of another app")
            return .success
        case .inUnusedParts(let bytes):
            run.console.note(
                "a copy of the name is left in a part of the database file that no row uses; the file has "
                    + "\(bytes >> 20) MB: run the command again with --vacuum, best while the server is "
                    + "stopped")
            return .failed
        }
    }

    private static func confirmErasure(of name: AccountName, run: Invocation) throws(OperationalError) {
        guard !run.arguments.has("yes") else { return }
        let prompt = "This cannot be undone. Type the name to erase \(VisibleText.of(name.description)): "
        guard let typed = try run.console.ask(prompt) else {
            throw OperationalError(.usage, message: "account erase: expected --yes without a terminal")
        }
        guard (try? AccountName(normalizing: typed)) == name else {
            throw OperationalError(.failed, message: "account erase: another name was typed; nothing changed")
        }
    }
}

extension AccountErasure {
    fileprivate var needsVacuum: Bool { if case .inUnusedParts = files { true } else { false } }
}

extension Account {
    fileprivate var stateText: String { isErased ? "erased" : state.rawValue }
}

extension AccountHoldings {
    fileprivate func summary(live: Int, guesses: AccountGuesses.Count?) -> JSONValue {
        guard case .object(let members) = account.json else { return .null }
        return .object(
            members + [
                ("erased", .bool(account.isErased)),
                (
                    "failed_logins",
                    guesses.map {
                        [
                            "count": .integer($0.failed), "since": .integer($0.since),
                            "last": .integer($0.last),
                        ]
                    } ?? .null
                ),
                ("pseudonym", .optional(account.pseudonym?.description)),
                ("reset_until", account.resets.map(\.until).max().map { .integer($0) } ?? .null),
                ("verified", verified.map { .integer($0) } ?? .null),
                ("codes", .array(codes.map(\.json))), ("sessions", .integer(Int64(live))),
                ("ended_sessions", .integer(Int64(sessions.count - live))),
                ("known_devices", .integer(Int64(devices.count))),
                ("upload_tickets", .integer(Int64(tickets.count))),
                ("idempotent_requests", .integer(Int64(requests.count))),
                ("altered_rows", .integer(Int64(altered.count))),
            ])
    }

    fileprivate func json(of deployment: Deployment, at now: Int64) throws(OperationalError) -> JSONValue {
        guard case .object(let members) = account.json else { return .null }
        let names = try deployment.names(in: records)
        var answers: [JSONValue] = []
        for request in requests { answers.append(try request.json(of: deployment)) }
        let own: [(name: String, value: JSONValue)] = [
            ("pseudonym", .optional(account.pseudonym?.description)),
            ("reset_until", account.resets.map(\.until).max().map { .integer($0) } ?? .null),
            ("verified", verified.map { .integer($0) } ?? .null), ("codes", .array(codes.map(\.json))),
        ]
        return [
            "exported": .integer(now), "account": .object(members + own),
            "sessions": .array(
                sessions.map { $0.exported(of: account.name.description) }),
            "known_devices": .array(devices.map(\.exported)),
            "upload_tickets": .array(tickets.map(\.json)), "idempotent_requests": .array(answers),
            "audit": .array(records.map { AuditLine($0, names: names).json }),
            "altered": .array(
                altered.map { ["table": .string($0.table), "row": .string($0.row)] }),
            "not_included": [
                "limits on guesses: counted under keyed hashes, from which no name can be computed",
                "secrets: the password's registration, keys and tokens are kept sealed or hashed",
                "logs: events have the account's number and no name",
                "backups, and what the backend holds",
            ],
        ]
    }
}

extension StoredSession {
    fileprivate func exported(of account: String) -> JSONValue {
        guard case .object(let members) = json(of: account) else { return .null }
        return .object(
            members + [
                ("release", .optional(release?.description)), ("opening", .string(opening.rawValue)),
            ])
    }
}

extension KnownDeviceEntry {
    fileprivate var exported: JSONValue {
        [
            "device": .string(text), "class": .string(kind.rawValue), "name": .string(name),
            "signing_key": .string(Base64.encode(device.signingKey.span, as: .url)),
            "first_seen": .integer(firstSeen), "last_seen": .integer(device.lastSeen),
        ]
    }
}

extension StoredAccountCode {
    fileprivate var text: String {
        "\(purpose) \(id), until \(TimeText.text(expires)), tries left: \(triesLeft)"
    }

    fileprivate var json: JSONValue {
        [
            "id": .string(id.description), "purpose": .string(purpose.description), "made": .integer(made),
            "until": .integer(expires), "tries_left": .integer(triesLeft),
        ]
    }
}

extension UploadTicketRecord {
    fileprivate var json: JSONValue {
        func text(_ bytes: [UInt8]) -> JSONValue { .string(String(decoding: bytes, as: UTF8.self)) }
        return [
            "ticket": .string(Base64.encode(id.bytes.span, as: .url)),
            "session": .string(session.description),
            "release": .string(release.description), "method": text(upload.method),
            "host": text(upload.authority), "target": text(upload.target),
            "content_type": upload.contentType.map(text) ?? .null, "length": .integer(Int64(upload.length)),
            "sha256": .string(Base64.encode(upload.sha256.span, as: .url)), "created": .integer(created),
            "expires": .integer(expires), "claimed": claimed.map { .integer($0) } ?? .null,
            "attempts": .integer(Int64(attempts)),
        ]
    }
}

extension HeldRequest {
    /// With the backend's answer opened, because it is held about the person.
    fileprivate func json(of deployment: Deployment) throws(OperationalError) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("key_sha256", .string(Base64.encode(request.key.span, as: .url))),
            ("begun", .integer(request.begun)),
        ]
        guard let answer else {
            members.append(("status", .null))
            return .object(members)
        }
        members.append(("status", .integer(Int64(answer.status))))
        if case .whole(_, let fields, let body) = try deployment.opened(answer, to: request) {
            let lines = fields.map { "\($0.name): \(String(decoding: $0.value, as: UTF8.self))" }
            members.append(("fields", .strings(lines)))
            members.append(("body", .string(Base64.encode(body.span, as: .standard))))
        }
        return .object(members)
    }
}
