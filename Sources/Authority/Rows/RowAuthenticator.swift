import CountersignMemory
import CountersignSeal
import CountersignWire

/// Authenticates the rows of ``AuthenticatedTable/all`` under keys that are not in the database: a tag for
/// each row, and a sealed digest for each table. A row that was altered has no valid tag; a row that was
/// deleted, or replaced by an earlier version of itself, no longer adds up to the digest.
///
/// The keys are derived from the key of the audit log, which is random for each store and sealed under the
/// master key: two deployments with one master key cannot exchange rows, and a new master key needs no new
/// tags.
///
/// Safe to share: keys do not change, and the findings are under their lock.
package final class RowAuthenticator: Sendable {
    package static let tagCount = 32
    /// Different rows that are reported; further ones are only counted.
    private static let mostReported = 1_000

    private let tagKey: HMACSHA256
    private let sumKey: HMACSHA256
    /// Encrypts digests: from two successive digests in the clear, the sum of a single row would be known.
    private let digestKey: MasterKey
    private let findingsKey: HMACSHA256
    private let findings: Locked<Findings>
    /// What the store must have reached; nil for connections to copies of it.
    package let head: FollowedHead?

    private struct Findings {
        var refusals: UInt64 = 0
        var reported: Set<String> = []
        var news: [String] = []
        var unverified = 0
        /// The groups of each table, by its number, that do not add up to its digest.
        var groups: [Int: Set<Int>] = [:]
        var edition: UInt64 = 0
        var hasOmitted = false

        mutating func report(_ finding: RowFinding) {
            guard !reported.contains(finding.identity) else { return }
            guard reported.count < mostReported else {
                if !hasOmitted {
                    news.append(
                        "more than \(mostReported) findings: further ones are only counted; "
                            + "`countersign audit verify` tells more")
                }
                hasOmitted = true
                return
            }
            reported.insert(finding.identity)
            news.append(finding.text)
        }

        /// After a check that found nothing: the next alteration of a row is another one.
        mutating func forgetReported() {
            reported = []
            hasOmitted = false
        }
    }

    /// Nil if libsodium does not start.
    package init?(key: Secret) {
        func part(_ purpose: String) -> Secret {
            HKDFSHA512.expand(key, info: Array("countersign/1 rows \(purpose)".utf8), count: 32)
        }
        guard let digestKey = MasterKey(part("digest")) else { return nil }
        self.digestKey = digestKey
        tagKey = part("tag").withExposedBytes { HMACSHA256(key: $0) }
        sumKey = part("sum").withExposedBytes { HMACSHA256(key: $0) }
        findingsKey = part("findings").withExposedBytes { HMACSHA256(key: $0) }
        (findings, head) = (Locked(Findings()), nil)
    }

    private init(_ other: RowAuthenticator, following head: FollowedHead) {
        (tagKey, sumKey, digestKey) = (other.tagKey, other.sumKey, other.digestKey)
        (findingsKey, findings, self.head) = (other.findingsKey, other.findings, head)
    }

    /// The same keys and findings, for connections to the deployment's own store.
    func following(_ head: FollowedHead) -> RowAuthenticator { RowAuthenticator(self, following: head) }

    package func tag(of message: RowMessage) -> [UInt8] {
        let digest = tagKey.authenticate(message.bytes.span)
        return digest.indices.map { digest[$0] }
    }

    package func isAuthentic(_ message: RowMessage, tag: UnsafeRawBufferPointer) -> Bool {
        let computed = tagKey.authenticate(message.bytes.span)
        return ConstantTime.equals(computed.span, Span(_unsafeBytes: tag)) == .equal
    }

    /// What a row adds to its table's digest. It is never stored by itself.
    package func sum(of message: RowMessage) -> RowSum { RowSum(sumKey.authenticate(message.bytes.span)) }

    /// The identifier of findings (``RowVerification/id``). It is a keyed digest, so an attacker without the
    /// key cannot search for other findings with the same identifier.
    func findingsID(_ content: [UInt8]) -> [UInt8] {
        let digest = findingsKey.authenticate(content.span)
        return digest.indices.map { digest[$0] }
    }

    package func seal(_ digest: RowDigest, of table: AuthenticatedTable) -> [UInt8] {
        var bytes = digest.bytes
        return digestKey.seal(Secret(taking: &bytes), as: .digest(of: table))
    }

    /// Nil if it was not sealed as the digest of this table.
    package func open(_ sealed: [UInt8], of table: AuthenticatedTable) -> RowDigest? {
        guard let opened = try? digestKey.open(sealed, as: .digest(of: table)) else { return nil }
        return opened.withExposedBytes { RowDigest($0) }
    }

    package func seal(_ summary: RowSummary) -> [UInt8] {
        var bytes = summary.bytes
        return digestKey.seal(Secret(taking: &bytes), as: .summary)
    }

    package func openSummary(_ sealed: [UInt8]) -> RowSummary? {
        guard let opened = try? digestKey.open(sealed, as: .summary) else { return nil }
        return opened.withExposedBytes { RowSummary($0) }
    }

    func sealUnderDigestKey(_ secret: Secret, as binding: SealBinding) -> [UInt8] {
        digestKey.seal(secret, as: binding)
    }

    func openUnderDigestKey(_ sealed: [UInt8], as binding: SealBinding) -> Secret? {
        try? digestKey.open(sealed, as: binding)
    }

    // MARK: What was found

    /// Whether the rows of that group add up to the table's digest, as far as is known.
    package func accepts(group: Int, of table: AuthenticatedTable) -> Bool {
        !table.refusesGroups || findings.with { !($0.groups[table.number]?.contains(group) ?? false) }
    }

    /// Whether all groups of the table add up to its digest, as far as is known.
    package func isComplete(_ table: AuthenticatedTable) -> Bool {
        findings.with { $0.groups[table.number]?.isEmpty ?? true }
    }

    /// Counts a row that was refused, and reports it once.
    package func refused(_ row: String, of table: AuthenticatedTable) {
        findings.with { findings in
            findings.refusals &+= 1
            findings.report(.altered(table: table.name, row: row))
        }
    }

    /// Remembers the result of a check of all rows: groups that do not add up are refused from now on.
    package func note(_ outcome: RowVerification) {
        findings.with { findings in
            if findings.groups != outcome.groups { findings.edition &+= 1 }
            findings.groups = outcome.groups
            findings.unverified = outcome.findings.count
            if outcome.findings.isEmpty { findings.forgetReported() }
            for finding in outcome.findings { findings.report(finding) }
        }
    }

    /// The findings that were not taken yet, for a log.
    package func takeNews() -> [String] {
        findings.with { findings in
            defer { findings.news = [] }
            return findings.news
        }
    }

    /// Increases when other groups are refused than before.
    package var edition: UInt64 { findings.with { $0.edition } }

    /// Reads of rows that were refused, and the findings of the last check of all rows.
    package var counts: (refusals: UInt64, findings: Int) {
        findings.with { ($0.refusals, $0.unverified) }
    }
}

extension SealBinding {
    static let schemaRecord = SealBinding(kind: "schema-record", row: "layout")
    fileprivate static let summary = SealBinding(kind: "row-summary", row: RowSummary.name)

    fileprivate static func digest(of table: AuthenticatedTable) -> SealBinding {
        SealBinding(kind: "row-digest", row: table.name)
    }
}
