import CountersignGate
import CountersignSeal
import CountersignWire

/// A defect of the stored rows.
package enum RowFinding: Sendable, Equatable {
    /// The row was altered, moved, or written without the deployment's key.
    case altered(table: String, row: String)
    /// The rows do not add up: some were deleted, added twice, or replaced by earlier versions of themselves.
    /// `difference` is the number of rows beyond those that there should be; of a table with groups, `groups`
    /// are the accounts' numbers modulo ``RowDigest/groups``.
    case unbalanced(table: String, groups: [Int], difference: Int64)
    /// The table's digest is missing, or was not made with this deployment's key.
    case digestMissing(table: String)
    case digestAltered(table: String)
    /// The table and its digest were put back to an earlier state together, also if both have changed since,
    /// or the summary of all digests is missing or altered.
    case putBack(table: String)
    /// The table cannot be read: it was removed, or has other columns.
    case unreadable(table: String)
    /// The table's indices or constraints do not hold for its rows: an index leaves some out, or a key that
    /// must be unique is there twice.
    case mismatched(table: String, text: String)
    /// The table or an index was rebuilt, removed or added, other than by this program.
    case rebuilt(table: String, text: String)
    /// The tables belong to another state of the audit log: `recorded` is the number of the last record that
    /// they belong to, and `last` that of the log's last record now. Equal if it is another record, or if the
    /// log went on at another record than `recorded`.
    case otherLog(recorded: Int64, last: Int64)

    package var text: String {
        switch self {
        case .altered(let table, let row): return "\(table) \(row): the row was altered"
        case .unbalanced(let table, let groups, let difference):
            let what =
                difference == 0
                ? "a row was put back to an earlier state, or another row stands in its place"
                : difference < 0 ? "\(-difference) missing, by number" : "\(difference) too many, by number"
            let which = groups.prefix(16).map(String.init).joined(separator: ",")
            return "\(table): the rows do not add up: \(what) (group \(which))"
        case .digestMissing(let table): return "\(table): the table's digest is missing"
        case .digestAltered(let table): return "\(table): the table's digest was altered"
        case .putBack(let table): return "\(table): the whole table was put back to an earlier state"
        case .unreadable(let table): return "\(table): the table cannot be read: it was removed or rebuilt"
        case .mismatched(let table, let text):
            return "\(table): its indices or constraints do not fit its rows: \(text)"
        case .rebuilt(let table, let text): return "\(table): \(text)"
        case .otherLog(let recorded, let last) where recorded == last:
            return "all: the tables belong to another record \(recorded) than the last of the audit log"
        case .otherLog(let recorded, let last):
            return "all: the tables belong to record \(recorded) of the audit log, whose last is \(last)"
        }
    }

    package var table: String {
        switch self {
        case .altered(let table, _), .unbalanced(let table, _, _), .digestMissing(let table),
            .digestAltered(let table), .putBack(let table), .unreadable(let table),
            .mismatched(let table, _), .rebuilt(let table, _):
            table
        case .otherLog: RowSummary.name
        }
    }

    var isOtherLog: Bool { if case .otherLog = self { true } else { false } }

    /// The same as for a row that a read has refused, so that each is reported once.
    var identity: String {
        if case .altered(let table, let row) = self { return "\(table) \(row)" }
        return text
    }
}

/// The result of verifying all rows.
package struct RowVerification: Sendable, Equatable {
    /// The number of rows.
    package var rows: Int64 = 0
    /// Those of altered rows are at most ``mostFindings``.
    package var findings: [RowFinding] = []
    /// The groups that do not add up, by the table's number.
    package var groups: [Int: Set<Int>] = [:]
    /// Stands for the findings and for the rows of their tables: another one where anything of these differs.
    /// Nil without findings.
    package var id: String?

    package static let mostFindings = 1_000

    package init() {}
}

/// Adds up the rows that a store reads, and compares them with the digests.
package struct RowExamination {
    private let rows: RowAuthenticator
    private var outcome = RowVerification()
    private var found = RowDigest()
    /// How many rows are altered, and the groups that they claim to belong to.
    private var altered: (count: Int, groups: Set<Int>) = (0, [])
    private let summary: RowSummary?
    /// A chain over everything that is wrong.
    private var chain: [UInt8] = []

    /// `summary` is the sealed ``RowSummary``.
    package init(_ rows: RowAuthenticator, summary: [UInt8]?) {
        self.rows = rows
        self.summary = summary.flatMap { rows.openSummary($0) }
    }

    package mutating func see(
        _ message: RowMessage, tag: UnsafeRawBufferPointer, group: Int, of table: AuthenticatedTable,
        label: @autoclosure () -> String
    ) {
        outcome.rows += 1
        // A row that is not authentic is left out of the sums: the sum of its original group then differs,
        // and that of the group that it claims to belong to does not.
        guard !rows.isAuthentic(message, tag: tag) else {
            return found.add(rows.sum(of: message), group: group)
        }
        altered.count += 1
        altered.groups.insert(group)
        extend(by: message.bytes + tag)
        guard outcome.findings.count < RowVerification.mostFindings else { return }
        outcome.findings.append(.altered(table: table.name, row: label()))
    }

    /// Ends a table. `pending` are the changes of the running transaction, which the stored digest does not
    /// have yet.
    package mutating func finish(_ table: AuthenticatedTable, sealed: [UInt8]?, pending: RowDigest?) {
        let before = outcome.findings.count
        defer {
            if altered.count > 0 || outcome.findings.count > before || outcome.groups[table.number] != nil {
                extend(by: Array(table.name.utf8) + found.bytes)
            }
            found = RowDigest()
            altered = (0, [])
        }
        guard let sealed, var stored = rows.open(sealed, of: table) else {
            outcome.groups[table.number] = Set(0..<RowDigest.groups)
            return outcome.findings.append(
                sealed == nil ? .digestMissing(table: table.name) : .digestAltered(table: table.name))
        }
        guard let summary, summary.contains(stored, of: table) else {
            outcome.groups[table.number] = Set(0..<RowDigest.groups)
            return outcome.findings.append(.putBack(table: table.name))
        }
        if let pending { stored.apply(pending) }
        let groups = found.groups(differingFrom: stored)
        guard !groups.isEmpty else { return }
        outcome.groups[table.number, default: []].formUnion(groups)
        // Altered rows explain as many missing ones of their groups.
        let difference = found.rows &- stored.rows &+ Int64(altered.count)
        guard difference != 0 || !altered.groups.isSuperset(of: groups) else { return }
        outcome.findings.append(.unbalanced(table: table.name, groups: groups, difference: difference))
    }

    /// Ends a table whose rows cannot be read: none of them is accepted.
    package mutating func fail(_ table: AuthenticatedTable) {
        found = RowDigest()
        altered = (0, [])
        outcome.groups[table.number] = Set(0..<RowDigest.groups)
        outcome.findings.append(.unreadable(table: table.name))
    }

    /// The table's indices or constraints do not fit its rows: none of them is accepted.
    package mutating func mismatch(_ table: AuthenticatedTable, text: String) {
        outcome.groups[table.number] = Set(0..<RowDigest.groups)
        outcome.findings.append(.mismatched(table: table.name, text: text))
    }

    /// The schema is another: no row of the table is accepted.
    package mutating func differ(_ table: String, text: String) {
        if let table = AuthenticatedTable.all.first(where: { $0.name == table }) {
            outcome.groups[table.number] = Set(0..<RowDigest.groups)
        }
        outcome.findings.append(.rebuilt(table: table, text: text))
    }

    /// Compares with the last audit record.
    package mutating func finish(audit last: AuditHead) {
        guard let summary, !summary.ends(with: last) else { return }
        outcome.findings.append(.otherLog(recorded: summary.audit.number, last: last.number))
    }

    private mutating func extend(by bytes: [UInt8]) { chain = rows.findingsID(chain + bytes) }

    package var verification: RowVerification {
        guard !outcome.findings.isEmpty else { return outcome }
        var outcome = outcome
        let texts = Array(outcome.findings.map(\.text).joined(separator: "\n").utf8)
        outcome.id = Hex.encode(Array(rows.findingsID(chain + texts).prefix(12)).span)
        return outcome
    }
}

/// The authentication of rows, as a store does it.
package protocol RowAuthenticationStore: Sendable {
    /// From now on, verifies rows by `rows` and tags those that it writes. Without this call, a store whose
    /// rows have tags accepts none of them and writes nothing.
    func authenticate(by rows: RowAuthenticator) throws(OperationalError)
    /// Whether no table has a row that only a deployment writes: a new store.
    func isEmpty() throws(OperationalError) -> Bool
    /// Sets the first values of a new store, tags its rows and begins the digests, all in one transaction: a
    /// store that has the values and no digests is an altered one. Does nothing if it has a check of the
    /// master key. The store does not use `rows` afterwards: another process's may be the right ones.
    func begin(
        with values: [(name: MetaName, value: [UInt8])], authenticatedBy rows: RowAuthenticator
    ) throws(OperationalError)
    /// Tags all rows as they are and begins the digests anew; returns the number of rows.
    func tagAllRows() throws(OperationalError) -> Int64
    /// Deletes the rows of ``AuthenticatedTable/deletedIfAltered`` that do not verify, and the rows of
    /// `groups` (by the table's number) of tables that refuse groups. Returns how many rows it deleted.
    func deleteUnverified(groups: [Int: Set<Int>]) throws(OperationalError) -> Int64
    /// Throws if a name or a user id might be free only because a row of an account, or the tombstone of an
    /// erased one, was removed or altered. Reads all of them, and keeps no other connection from writing.
    func verifyNames() throws(OperationalError)
    /// Verifies every row and digest, in one state of the store, as it is on the disk.
    func verifyRows() throws(OperationalError) -> RowVerification
    /// Throws unless the rows of these tables in the account's group are authentic and add up, so that none
    /// of the account's was deleted or put back to an earlier state. Large tables are not read; then only
    /// what ``verifyRows()`` has found counts.
    func verifyGroup(ofAccount number: Int64, in tables: [AuthenticatedTable]) throws(OperationalError)
    /// The number of rows that ``verifyRows()`` reads, as the digests state it.
    func countRows() throws(OperationalError) -> Int64
    /// A number that is the same as long as no other connection has changed the store. It means nothing to
    /// another connection, and does not change if the file is written to without the store's software.
    func changeMark() throws(OperationalError) -> Int64
}

/// The rows, as commands and servers check them.
extension Deployment {
    /// Verifies every row and digest.
    package func verifyRows() throws(OperationalError) -> RowVerification { try store.verifyRows() }

    /// Accepts the rows as they are, after an operator has inspected them: they get new tags. Sessions, known
    /// devices and upload tickets that do not verify are deleted instead, and their users sign in again.
    /// Deliveries, codes and verifications that do not verify are deleted, too: the server never signs what
    /// another program has written, and such a row opens no account.
    ///
    /// `id` is the ``RowVerification/id`` of the findings that the operator has inspected; no other findings
    /// are accepted. No server may run: it would use the rows before the operator has corrected them.
    package func acceptRows(findings id: String) throws(OperationalError) -> RowAcceptance {
        try folder.withoutServer(
            refusal: "audit accept: a server runs on this data folder; stop it first"
        ) { () throws(OperationalError) in
            var outcome = RowAcceptance()
            let change: (any Store) throws(OperationalError) -> Void = { (store) throws(OperationalError) in
                outcome = try self.acceptRows(findings: id, in: store)
            }
            for fault in try store.applyTogether([change]) { if let fault { throw fault } }
            if outcome.findings.contains(where: \.isOtherLog) {
                head.accept(try store.state(askingForAuditRecord: 0))
            }
            generation.advance()
            return outcome
        }
    }

    private func acceptRows(findings id: String, in store: any Store) throws(OperationalError)
        -> RowAcceptance
    {
        let found = try store.verifyRows()
        guard let current = found.id else {
            throw OperationalError(.failed, message: "audit accept: every row verifies; nothing was changed")
        }
        guard current == id else {
            throw OperationalError(
                .failed,
                message:
                    "audit accept: these are not the findings of now; look at `countersign audit verify` "
                    + "again. Nothing was changed")
        }
        for case .rebuilt(let table, let text) in found.findings {
            throw OperationalError(
                .failed, message: "audit accept: \(table): \(text). Undo it, or restore a backup")
        }
        let keys = masterKey.keys
        let slot = keys.next == nil ? keys.slot : keys.slot.next
        try store.set(.sealSlot, to: [slot.rawValue])
        let deleted = try store.deleteUnverified(groups: found.groups)
        let rows = try store.tagAllRows()
        let named = found.findings.prefix(RowAcceptance.mostRecorded).map { JSONValue.string($0.identity) }
        let draft = auditDraft(
            for: .rowsAccept, on: .deployment,
            details: [
                ("findings", .integer(Int64(found.findings.count))), ("id", .string(id)),
                ("accepted", .array(named)), ("deleted", .integer(deleted)), ("rows", .integer(rows)),
                ("tables", .array(Set(found.findings.map(\.table)).sorted().map { .string($0) })),
            ])
        try store.set(.rowsAccepted, to: Array(String(clock.estimate).utf8), recording: draft)
        return RowAcceptance(findings: found.findings, deleted: deleted, rows: rows)
    }
}

/// What ``Deployment/acceptRows(findings:)`` has accepted.
package struct RowAcceptance: Sendable {
    /// Findings that the audit log names; it has the number and the id of all.
    static let mostRecorded = 100

    package var findings: [RowFinding] = []
    package var deleted: Int64 = 0
    package var rows: Int64 = 0
}
