import CountersignAuthority
import CountersignWire

extension Command {
    static let auditList = Command(
        words: ["audit", "list"], summary: "show the recorded changes and their authors",
        options: [
            .value("last", placeholder: "N", meaning: "so many records, the latest ones (default: 50)"),
            .value(
                "after", placeholder: "NUMBER",
                meaning: "the first ones behind this record instead: --last N at most"),
            .flag("follow", meaning: "then each record that is added, until Ctrl-C"),
            .data, .json,
        ],
        notes: """
            As the records stand; `countersign audit verify` tells whether they are whole. The log itself \
            names \
            accounts by
            random pseudonyms, which are shown beside the names; of an erased account only the pseudonym \
            is left. With --follow, --json prints an object a line.
            """
    ) { (run) throws(OperationalError) in
        let deployment = try run.deployment()
        let rows =
            if let number = try run.number("after", in: 0...Int.max) {
                try deployment.store.auditRows(after: Int64(number), limit: last(run))
            } else {
                try deployment.auditRecords(last: last(run))
            }
        if run.arguments.has("follow") { try run.followAudit(from: rows, in: deployment) }
        let names = try deployment.names(in: rows)
        try run.print(["records": .array(rows.map { AuditLine($0, names: names).json })]) {
            Table.text(
                head: AuditLine.head,
                rows: rows.map { AuditLine($0, names: names).cells })
        }
        return .success
    }

    static let auditVerify = Command(
        words: ["audit", "verify"],
        summary: "find out whether the record of changes, or a row that identifies callers, was altered",
        options: [
            .value(
                "noted", placeholder: "NUMBER:TAG",
                meaning: "a head printed earlier and kept elsewhere, which the log must still have"),
            .data,
            .json,
        ],
        notes: """
            Finds records that an attacker with the database and without the master key altered, moved or
            removed, also from the end; and rows of apps, accounts, sessions, webhooks and keys that were
            altered, deleted or put back to an earlier state. Only --noted finds a whole database that was
            put back to an earlier copy: keep the printed head in a place that a writer to the database
            cannot change. Exit status 1 if anything was found.
            """
    ) { (run) throws(OperationalError) in
        let noted = try run.arguments.value("noted").map { (text) throws(OperationalError) in
            guard let head = AuditHead(text) else {
                throw OperationalError(
                    .usage, message: "--noted `\(text)`: expected NUMBER:TAG, as `audit verify` prints it")
            }
            return head
        }
        let deployment = try run.deployment(accepting: .any)
        let outcome = try deployment.verifyAudit(noted: noted)
        let rows = try deployment.verifyRows()
        try run.print([
            "records": .integer(outcome.records), "head": .optional(outcome.head?.text),
            "findings": .array(outcome.findings.map(\.json)),
            "rows": [
                "verified": .integer(rows.rows), "findings": .array(rows.findings.map(\.json)),
                "findings_id": .optional(rows.id),
            ],
        ]) {
            let head = outcome.head.map { "head: \($0.text)" } ?? "head: unknown"
            let records =
                outcome.findings.isEmpty
                ? ["\(outcome.records) records, all of them whole"] : outcome.findings.map(\.text)
            let found =
                rows.findings.isEmpty
                ? ["\(rows.rows) rows, all of them whole"] : rows.findings.map { AuditLine.harmless($0.text) }
            let id = rows.id.map { ["findings in rows: \($0)"] } ?? []
            return (records + found + id + [head]).joined(separator: "\n")
        }
        return outcome.findings.isEmpty && rows.findings.isEmpty ? .success : .failed
    }

    static let auditAccept = Command(
        words: ["audit", "accept"],
        summary: "go on with the rows as they are, after `audit verify` found some",
        options: [
            .value(
                "findings", placeholder: "ID",
                meaning: "what was looked at, and is to stay as it is: the id that `audit verify` printed"),
            .data, .json,
        ],
        notes: """
            Restore a backup where there is one. Without one, stop the server, keep what `audit verify` prints
            then, run this with its id, set right each row that was named (`app policy`, `account lock`,
            `release retire`), and start the server. Refuses if anything has changed since. Rows of apps,
            settings, releases and accounts are taken as they stand; sessions, known devices and upload
            tickets that do not verify are deleted, and their users sign in again. The audit log records it.
            """
    ) { (run) throws(OperationalError) in
        guard let id = run.arguments.value("findings") else {
            throw OperationalError(
                .usage,
                message:
                    "expected --findings ID, as `audit verify` prints it: the altered rows are accepted as "
                    + "true from then on")
        }
        let outcome = try run.deployment(accepting: .any).acceptRows(findings: id)
        try run.print([
            "rows": .integer(outcome.rows), "deleted": .integer(outcome.deleted),
            "accepted": .array(outcome.findings.map(\.json)),
        ]) {
            let taken = outcome.findings.map { "accepted: \(AuditLine.harmless($0.text))" }
            let sum =
                "\(outcome.rows) rows accepted, \(outcome.deleted) sessions, devices and tickets deleted"
            return (taken + [sum]).joined(separator: "\n")
        }
        return .success
    }

    private static func last(_ run: Invocation) throws(OperationalError) -> Int {
        guard let text = run.arguments.value("last") else { return 50 }
        guard let count = Int(text), (1...1_000_000).contains(count) else {
            throw OperationalError(.usage, message: "--last `\(text)`: expected a number from 1 to 1000000")
        }
        return count
    }
}

extension AuditFinding {
    fileprivate var text: String {
        switch self {
        case .missing(let range): "missing: \(AuditFinding.text(of: range))"
        case .altered(let number): "altered: record \(number)"
        case .moved(let from, let to): "moved: record \(from) stands in the place of record \(to)"
        case .beyondHead(let range): "beyond the head, which is an older one: \(AuditFinding.text(of: range))"
        case .headMissing: "the head is missing: how many records there were is not known"
        case .headAltered: "the head was altered: how many records there were is not known"
        case .notedHeadMissing(let head):
            "the log does not have \(head.text): it is an earlier copy, or another log"
        }
    }

    private static func text(of range: ClosedRange<Int64>) -> String {
        range.lowerBound == range.upperBound
            ? "record \(range.lowerBound)" : "records \(range.lowerBound) to \(range.upperBound)"
    }

    fileprivate var json: JSONValue {
        switch self {
        case .missing(let range): AuditFinding.json(kind: "missing", range: range)
        case .altered(let number): ["kind": "altered", "number": .integer(number)]
        case .moved(let from, let to): ["kind": "moved", "from": .integer(from), "to": .integer(to)]
        case .beyondHead(let range): AuditFinding.json(kind: "beyond-head", range: range)
        case .headMissing: ["kind": "head-missing"]
        case .headAltered: ["kind": "head-altered"]
        case .notedHeadMissing(let head): ["kind": "noted-head-missing", "head": .string(head.text)]
        }
    }

    private static func json(kind: String, range: ClosedRange<Int64>) -> JSONValue {
        ["kind": .string(kind), "first": .integer(range.lowerBound), "last": .integer(range.upperBound)]
    }
}

extension RowFinding {
    fileprivate var json: JSONValue {
        switch self {
        case .altered(let table, let row):
            ["kind": "altered", "table": .string(table), "row": .string(row)]
        case .unbalanced(let table, let groups, let difference):
            [
                "kind": "unbalanced", "table": .string(table), "difference": .integer(difference),
                "groups": .array(groups.map { .integer(Int64($0)) }),
            ]
        case .digestMissing(let table): ["kind": "digest-missing", "table": .string(table)]
        case .digestAltered(let table): ["kind": "digest-altered", "table": .string(table)]
        case .unreadable(let table): ["kind": "unreadable", "table": .string(table)]
        case .mismatched(let table, let text):
            ["kind": "mismatched", "table": .string(table), "text": .string(text)]
        case .rebuilt(let table, let text):
            ["kind": "rebuilt", "table": .string(table), "text": .string(text)]
        case .putBack(let table): ["kind": "put-back", "table": .string(table)]
        case .otherLog(let recorded, let last):
            [
                "kind": "other-log", "table": "all", "recorded": .integer(recorded), "last": .integer(last),
            ]
        }
    }
}

/// One audit record for people and scripts. It may have been altered in the store, so it is parsed as
/// untrusted text.
struct AuditLine {
    /// The columns of ``cells``.
    static let head = ["NUMBER", "TIME", "WHO", "WHAT", "TO", "DETAILS"]

    let number: Int64
    /// Nil where what stands there is no record.
    private let document: JSONDocument?
    /// The names of the accounts that pseudonyms stand for.
    private let names: [String: String]

    init(_ row: AuditRow, names: [String: String]) {
        number = row.number
        document = row.document
        self.names = names
    }

    /// A record as the admin API shows it, which is ``json``.
    init(_ record: JSON, of list: JSONDocument) {
        number = record["number"].flatMap { list.integer($0, in: 1...Int.max) }.map(Int64.init) ?? 0
        let isReadable = record["unreadable"] == nil
        document = isReadable ? try? JSONReader.read(Array(list.bytes(of: record))) : nil
        names = Dictionary(
            [(record, "account"), (record["actor"] ?? record, "name")].compactMap { holder, title in
                guard let pseudonym = holder["pseudonym"]?.string, let name = holder[title]?.string else {
                    return nil
                }
                return (pseudonym, name)
            }, uniquingKeysWith: { first, _ in first })
    }

    var json: JSONValue {
        guard let document else { return ["number": .integer(number), "unreadable": true] }
        guard case .object(let members) = JSONValue(document.root, of: document) else { return .null }
        return .object(
            named(members, as: "account").map { member in
                guard member.name == "actor", case .object(let actor) = member.value else { return member }
                return ("actor", .object(named(actor, as: "name")))
            })
    }

    /// With the name before the pseudonym; null if the account was erased.
    private func named(
        _ members: [(name: String, value: JSONValue)], as title: String
    ) -> [(name: String, value: JSONValue)] {
        members.flatMap { member -> [(name: String, value: JSONValue)] in
            guard member.name == "pseudonym", case .string(let pseudonym) = member.value else {
                return [member]
            }
            return [(title, .optional(names[pseudonym])), member]
        }
    }

    /// Number, time, actor, action, object, details.
    var cells: [String] {
        guard let document else { return [String(number), "-", "-", "unreadable", "-", "-"] }
        let root = document.root
        let time = root["time"].flatMap { AuditLine.time($0, in: document) }
        let actor =
            root["actor"]?["name"]?.string ?? root["actor"].flatMap(account) ?? root["actor"]?["uid"].map {
                "uid \(document.text(of: $0))"
            }
            ?? "-"
        let details = (root["details"]?.members ?? []).map { member in
            "\(member.name)=\(text(of: member.value, named: member.name, in: document))"
        }
        return [
            String(number), time ?? "-", actor,
            root["action"]?.string ?? "-",
            root["release"]?.string ?? account(root) ?? root["app"]?.string ?? "-",
            details.joined(separator: " "),
        ].map(AuditLine.harmless)
    }

    /// The name that the pseudonym in `value` stands for, else the pseudonym; nil if `value` has none.
    private func account(_ value: JSON) -> String? {
        value["pseudonym"]?.string.map { names[$0] ?? $0 }
    }

    /// Texts as they are, times as every command prints them, and the steps of a retirement as they are
    /// given.
    private func text(of value: JSON, named name: String, in document: JSONDocument) -> String {
        if let text = value.string { return text }
        if AuditLine.isTime(name), let time = AuditLine.time(value, in: document) { return time }
        if name == "rollout", let steps = value.elements {
            return steps.map { step in
                let percent = step["percent"].map { document.text(of: $0) } ?? "?"
                guard let since = step["since"], document.text(of: since) != "0" else { return percent }
                return "\(percent)@\(AuditLine.time(since, in: document) ?? "?")"
            }.joined(separator: ",")
        }
        return document.text(of: value)
    }

    /// Whether the detail of a record of that name is a time, in whole Unix seconds.
    static func isTime(_ name: String) -> Bool {
        ["at", "until", "expires", "made"].contains(name) || name.hasSuffix("_at")
    }

    private static func time(_ value: JSON, in document: JSONDocument) -> String? {
        document.integer(value, in: 0...253_402_300_799).map { TimeText.text(Int64($0)) }
    }

    /// Without control characters, which could make a terminal show something else.
    static func harmless(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}

extension Deployment {
    /// The names of the accounts whose pseudonyms the records contain.
    func names(in rows: [AuditRow]) throws(OperationalError) -> [String: String] {
        var names: [String: String] = [:]
        for row in rows {
            guard let root = row.document?.root else { continue }
            for text in [root["pseudonym"]?.string, root["actor"]?["pseudonym"]?.string] {
                guard let text, names[text] == nil, let pseudonym = AccountPseudonym(text) else { continue }
                names[text] = try store.account(of: pseudonym)?.name.description
            }
        }
        return names
    }
}
