import CountersignAuthority
import CountersignWire

extension Command {
    static let auditList = Command(
        words: ["audit", "list"], summary: "show who changed what",
        options: [.value("last", "N", "so many records, the latest ones (default: 50)"), .data, .json],
        notes: "As the records stand; `countersign audit verify` tells whether they are whole."
    ) { (run) throws(Fault) in
        let rows = try run.deployment().auditRecords(last: last(run))
        try run.print(["records": .array(rows.map { AuditLine($0).json })]) {
            Table.text(["NUMBER", "TIME", "WHO", "WHAT", "TO", "DETAILS"], rows.map { AuditLine($0).cells })
        }
        return .success
    }

    static let auditVerify = Command(
        words: ["audit", "verify"], summary: "find out whether the record of changes was altered",
        options: [
            .value("noted", "NUMBER:TAG", "a head printed earlier and kept elsewhere, which the log must still have"),
            .data,
            .json,
        ],
        notes: """
            Finds records that were altered, moved or removed, also from the end, by anybody who has the database without
            the master key. A whole database that was put back to an earlier copy is found by --noted alone: keep the head
            that this prints where who can write to the database cannot. Exit status 1 where anything was found.
            """
    ) { (run) throws(Fault) in
        let noted = try run.arguments.value("noted").map { (text) throws(Fault) in
            guard let head = AuditHead(text) else {
                throw Fault(.usage, "--noted `\(text)`: expected NUMBER:TAG, as `audit verify` prints it")
            }
            return head
        }
        let outcome = try run.deployment().verifyAudit(noted: noted)
        try run.print([
            "records": .integer(outcome.records), "head": .optional(outcome.head?.text),
            "findings": .array(outcome.findings.map(\.json)),
        ]) {
            let head = outcome.head.map { "head: \($0.text)" } ?? "head: unknown"
            guard outcome.findings.isEmpty else {
                return (outcome.findings.map(\.text) + [head]).joined(separator: "\n")
            }
            return "\(outcome.records) records, all of them whole\n\(head)"
        }
        return outcome.findings.isEmpty ? .success : .failed
    }

    private static func last(_ run: Invocation) throws(Fault) -> Int {
        guard let text = run.arguments.value("last") else { return 50 }
        guard let count = Int(text), (1...1_000_000).contains(count) else {
            throw Fault(.usage, "--last `\(text)`: expected a number from 1 to 1000000")
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
        case .notedHeadMissing(let head): "the log does not have \(head.text): it is an earlier copy, or another log"
        }
    }

    private static func text(of range: ClosedRange<Int64>) -> String {
        range.lowerBound == range.upperBound
            ? "record \(range.lowerBound)" : "records \(range.lowerBound) to \(range.upperBound)"
    }

    fileprivate var json: JSONValue {
        switch self {
        case .missing(let range): AuditFinding.json("missing", range)
        case .altered(let number): ["kind": "altered", "number": .integer(number)]
        case .moved(let from, let to): ["kind": "moved", "from": .integer(from), "to": .integer(to)]
        case .beyondHead(let range): AuditFinding.json("beyond-head", range)
        case .headMissing: ["kind": "head-missing"]
        case .headAltered: ["kind": "head-altered"]
        case .notedHeadMissing(let head): ["kind": "noted-head-missing", "head": .string(head.text)]
        }
    }

    private static func json(_ kind: String, _ range: ClosedRange<Int64>) -> JSONValue {
        ["kind": .string(kind), "first": .integer(range.lowerBound), "last": .integer(range.upperBound)]
    }
}
