import CountersignGate
import CountersignWire

/// Rewrites the log of a version that recorded accounts by name: each name becomes the account's pseudonym,
/// so
/// that an account can be erased. The rewriting verifies the former chain record by record, chains the new
/// records anew, and ends with a record that contains the former head. A log that was altered is not
/// rewritten, because that would make it look intact.
package struct AuditRewrite: Sendable {
    private let chain: AuditChain
    private let time: Int64
    private var formerTag = AuditChain.firstTag
    private var tag = AuditChain.firstTag
    private var number: Int64 = 0

    init(_ chain: AuditChain, at time: Int64) {
        self.chain = chain
        self.time = time
    }

    /// The record in its new form; call it for each record, in order.
    package mutating func row(_ row: AuditRow, naming lookup: PseudonymLookup) throws(OperationalError)
        -> AuditRow
    {
        guard row.number == number + 1, AuditChain.number(in: row) == row.number,
            chain.isEqual(chain.tag(of: row.record, behind: formerTag), to: row.tag)
        else { throw AuditRewrite.altered }
        let record = try AuditRewrite.record(row, naming: lookup)
        formerTag = row.tag
        tag = chain.tag(of: record, behind: tag)
        number = row.number
        return AuditRow(number: row.number, record: record, tag: tag)
    }

    /// The record of the rewriting, and the new head. `sealed` is the former head.
    package func end(_ sealed: [UInt8]?) throws(OperationalError) -> (row: AuditRow, head: [UInt8]) {
        guard let sealed, let head = chain.head(sealed), head.number == number,
            chain.isEqual(head.tag, to: formerTag)
        else { throw AuditRewrite.altered }
        let entry = AuditEntry(
            actor: .server, action: .auditRewrite, subject: .deployment,
            details: [("records", .integer(number)), ("from", .string(head.text))])
        let record = try entry.record(number: number + 1, at: time) { (_, _) in AccountPseudonym() }
        let last = AuditRow(
            number: number + 1, record: record, tag: chain.tag(of: record, behind: tag))
        return (last, chain.sealed(AuditHead(number: last.number, tag: last.tag)))
    }

    /// Whether the record names an account as former versions did.
    static func namesAccount(_ row: AuditRow) -> Bool {
        guard let document = row.document else { return false }
        let actor = document.root["actor"]
        return document.root["account"] != nil
            || actor?["kind"]?.string == "account" && actor?["name"] != nil
    }

    private static func record(
        _ row: AuditRow, naming lookup: PseudonymLookup
    ) throws(OperationalError) -> [UInt8] {
        guard namesAccount(row), let document = row.document else { return row.record }
        var members: [(name: String, value: JSONValue)] = []
        for member in document.root.members ?? [] {
            switch (member.name, JSONValue(member.value, of: document)) {
            case ("account", .string(let name)):
                let pseudonym = try pseudonym(of: name, in: document.root["app"]?.string, naming: lookup)
                members.append(("pseudonym", .string(pseudonym.description)))
            case ("actor", .object(let actor)):
                members.append(("actor", try self.actor(actor, naming: lookup)))
            case (_, let value): members.append((member.name, value))
            }
        }
        return JSONValue.object(members).bytes
    }

    private static func actor(
        _ members: [(name: String, value: JSONValue)], naming lookup: PseudonymLookup
    ) throws(OperationalError) -> JSONValue {
        guard members.contains(where: { $0.name == "kind" && $0.value == "account" }) else {
            return .object(members)
        }
        var app: String?
        for case ("app", .string(let text)) in members { app = text }
        var changed: [(name: String, value: JSONValue)] = []
        for member in members {
            guard member.name == "name", case .string(let name) = member.value else {
                changed.append(member)
                continue
            }
            let pseudonym = try pseudonym(of: name, in: app, naming: lookup)
            changed.append(("pseudonym", .string(pseudonym.description)))
        }
        return .object(changed)
    }

    /// A random pseudonym for a name that no account can have.
    private static func pseudonym(
        of name: String, in app: String?, naming lookup: PseudonymLookup
    ) throws(OperationalError) -> AccountPseudonym {
        guard let app = app.flatMap({ AppName($0) }), let name = try? AccountName(normalizing: name) else {
            return AccountPseudonym()
        }
        return try lookup(name, app)
    }

    private static let altered = OperationalError(
        .failed,
        message: "audit log: it was altered, so the names in it are not replaced by pseudonyms. "
            + "`countersign audit verify` tells more")
}

extension Deployment {
    /// Replaces the names in the log by pseudonyms, once. Does nothing if there are none.
    func rewriteAudit() throws(OperationalError) {
        var hasNames = false
        try forEachAuditRow { (row) in if !hasNames { hasNames = AuditRewrite.namesAccount(row) } }
        guard hasNames else { return }
        try store.rewriteAudit(AuditRewrite(auditChain, at: clock.now))
    }

    /// The same at the first opening by a version that records pseudonyms. A log that was altered stays as it
    /// is, for `audit verify` to report: that is remembered, so that later openings do not read it again. An
    /// erasure tries it again.
    func rewriteAuditOnce() throws(OperationalError) {
        do {
            guard try store.value(of: .auditPseudonyms) == nil else { return }
            // Outside a write transaction, which would keep others waiting while the log is read.
            guard try verifyAudit().findings.isEmpty else {
                _ = try store.setIfAbsent(.auditPseudonyms, to: [0])
                return
            }
            try rewriteAudit()
        } catch  where error.kind == .failed {
            return
        }
        _ = try store.setIfAbsent(.auditPseudonyms, to: [1])
    }
}

extension JSONValue {
    /// What was read, to be written again.
    package init(_ value: JSON, of document: JSONDocument) {
        switch value.content {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .number:
            self =
                document.integer(value, in: Int.min...Int.max).map { .integer(Int64($0)) }
                ?? .string(document.text(of: value))
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map { JSONValue($0, of: document) })
        case .object(let members):
            self = .object(members.map { ($0.name, JSONValue($0.value, of: document)) })
        }
    }
}
