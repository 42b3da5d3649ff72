import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

extension FollowedHead {
    fileprivate func compare(_ state: StoreState, of place: String) throws(OperationalError) {
        try require(of: place) { _ in state }
    }
}

/// A store is accepted unless it is behind the head that the data folder has kept, or has another history.
@Suite struct FollowedHeadTests {
    /// Heads are compared without the ids of digests.
    private func summary(
        changes: [UInt64], audit: Int64, record: UInt8? = nil, restored: Int64 = 0
    ) -> RowSummary {
        let digests = changes.map { count in
            var digest = RowDigest()
            digest.changes = count
            return digest
        }
        return RowSummary(
            of: digests, audit: AuditHead(number: audit, tag: tag(audit, record: record)), restored: restored)
    }

    private let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    private let rows: RowAuthenticator

    private let chain = AuditChain(key: Secret(random: 32))

    init() throws { rows = try #require(RowAuthenticator(key: Secret(random: 32))) }

    private func head(
        under rows: RowAuthenticator? = nil, accepting copy: AcceptedCopy = .latestOfAllNodes
    ) throws -> FollowedHead {
        try FollowedHead(
            in: DataFolder(path, absence: .create), under: rows ?? self.rows, accepting: copy)
    }

    /// Each record is one byte, its number. `record` is that of the third, which was followed, if it is
    /// another.
    private func state(
        changes: [UInt64] = [10, 20], audit: Int64 = 3, transactions: Int64 = 5, restored: Int64 = 0,
        record: UInt8? = nil
    ) -> StoreState {
        var state = StoreState()
        state.transactions = transactions
        state.summary = rows.seal(summary(changes: changes, audit: audit, restored: restored))
        state.asked = AuditHead(number: 3, tag: tag(3, record: record))
        state.restored = restored > 0 ? rows.seal(AcceptedRestoration(at: restored)) : nil
        return state
    }

    private func tag(_ number: Int64, record: UInt8? = nil) -> [UInt8] {
        guard number > 0 else { return AuditChain.firstTag }
        return chain.tag(of: [record ?? UInt8(number)], behind: tag(number - 1))
    }

    @Test(
        "what is behind, or has another history, is refused",
        arguments: [
            ([10, 20], 3, 5, true), ([11, 21], 3, 6, true), ([10, 19], 3, 5, false), ([9, 99], 3, 5, false),
            ([10, 20], 2, 5, false), ([10, 20], 3, 4, false), ([10, 20, 7], 3, 5, true),
        ] as [([UInt64], Int64, Int64, Bool)])
    func behind(changes: [UInt64], audit: Int64, transactions: Int64, isAccepted: Bool) throws {
        try head().compare(state(), of: "db")
        // As another process on the folder finds it.
        let second = try head()
        #expect(second.kept?.audit.number == 3)
        let found = state(changes: changes, audit: audit, transactions: transactions)
        if isAccepted { return try second.compare(found, of: "db") }
        #expect(throws: OperationalError.self) { try second.compare(found, of: "db") }
        // Then this process uses no store any more, and tells the others once.
        #expect(throws: OperationalError.self) { try second.compare(state(), of: "db") }
        #expect(throws: OperationalError.self) { try second.requireUsable() }
        var reported: [[UInt8]] = []
        for _ in 0..<2 { second.report { (sealed) throws(OperationalError) in reported.append(sealed) } }
        let reports = reported.compactMap { rows.openReport($0) }
        #expect(reports.map(\.head.audit.number) == [3] && reports[0].reporter.hasSuffix(":\(path)"))
        // Nothing of the earlier copy was noted.
        #expect(try head().kept?.changes == [10, 20])
    }

    @Test func whatIsCommittedDuringTheReadIsNotMissing() throws {
        let head = try head()
        try head.compare(state(), of: "db")
        try head.require(of: "db") { _ in
            head.follow(transactions: 6, summary: summary(changes: [11, 20], audit: 4))
            return state()
        }
        #expect(head.kept?.changes == [11, 20])
    }

    @Test func anotherHistoryIsRefused() throws {
        try head().compare(state(), of: "db")
        let later = state(changes: [50, 60], audit: 9, transactions: 50, record: 77)
        #expect(throws: OperationalError.self) { try head().compare(later, of: "db") }
        // An alteration of the record does not hide that, nor does its removal.
        var altered = later
        altered.asked?.tag = [UInt8](repeating: 1, count: 32)
        #expect(throws: OperationalError.self) { try head().compare(altered, of: "db") }
        altered.asked = nil
        #expect(throws: OperationalError.self) { try head().compare(altered, of: "db") }
        // The record that was followed, and further ones.
        try head().compare(state(changes: [50, 60], audit: 9, transactions: 50), of: "db")
    }

    @Test func aTransactionComparesTheSummaryThatItReads() throws {
        let head = try head()
        let lease = NodeLease.lasting()
        head.ends(lease)
        try head.compare(state(), of: "db")
        try head.require(summary(changes: [10, 20], audit: 3), transactions: 5, of: "db")
        try head.require(summary(changes: [12, 20], audit: 4), transactions: 7, of: "db")
        #expect(lease.isFresh)
        #expect(throws: OperationalError.self) {
            try head.require(summary(changes: [10, 19], audit: 3), transactions: 9, of: "db")
        }
        // What this process has in memory is refused from now on, whatever is read then.
        #expect(head.isBehind && !lease.isFresh)
        lease.renew(until: .max)
        let fault = #expect(throws: OperationalError.self) { try lease.requireFresh() }
        #expect(fault?.message.contains("put back to an earlier copy") == true)
        let transactions = try self.head()
        #expect(throws: OperationalError.self) {
            try transactions.require(summary(changes: [10, 20], audit: 3), transactions: 4, of: "db")
        }
    }

    @Test func aReportRefusesUntilTheStoreIsRestored() throws {
        var found = state()
        found.reported = rows.seal(
            HeadReport(head: try kept(after: state(changes: [11, 20])), reporter: "b:/data"))
        let head = try head()
        let error = #expect(throws: OperationalError.self) { try head.compare(found, of: "db") }
        #expect(error?.message.contains("b:/data") == true && head.isBehind)
        accept(AcceptedRestoration(at: 1), in: &found)
        // The same process goes on.
        try head.compare(found, of: "db")
        #expect(!head.isBehind)
        // One that another deployment has sealed does not count.
        found = state()
        found.reported = try #require(RowAuthenticator(key: Secret(random: 32))).seal(
            HeadReport(head: StoreHead(), reporter: "c:/data"))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try FollowedHead(in: DataFolder(folder, absence: .create), under: rows).compare(found, of: "db")
    }

    private func accept(_ restoration: AcceptedRestoration, in state: inout StoreState) {
        state.restored = rows.seal(restoration)
        let accepted = summary(changes: [10, 20], audit: 3, restored: restoration.time)
        state.summary = rows.seal(accepted)
    }

    @Test("a command tells no other node")
    func commandsReportNothing() throws {
        try head().compare(state(), of: "db")
        let command = try head(accepting: .latest)
        #expect(throws: OperationalError.self) { try command.compare(state(changes: [9, 9]), of: "db") }
        command.report { _ in Issue.record("a command has reported a store") }
    }

    /// A store whose node has the copy of a later one: production beside a test system.
    private func reported(restored: Int64 = 0) throws -> StoreState {
        var found = state(restored: restored)
        var other = try kept(after: state(changes: [11, 19], audit: 9))
        other.restored = restored
        found.reported = rows.seal(HeadReport(head: other, reporter: "test:/data"))
        return found
    }

    @Test func aNodeThatHasFollowedTheStoreRejectsAReport() throws {
        let found = try reported()
        try head().compare(state(), of: "db")
        let running = try head()
        #expect(throws: OperationalError.self) { try running.compare(found, of: "db") }
        let (report, restoration) = try head(accepting: .any).rejection(
            of: found, at: 7, keyedRequestsFrom: 0)
        #expect(report.reporter == "test:/data" && restoration.time == 7)
        #expect(restoration.repeated?.keyedRequestsFrom == 0)
        var accepted = found
        accept(restoration, in: &accepted)
        // Also if the other folder reports again.
        try running.compare(accepted, of: "db")
        // What was put back to before the rejection is an earlier copy.
        #expect(throws: OperationalError.self) { try head().compare(found, of: "db") }
    }

    @Test("a report is rejected only by a folder whose store lacks nothing")
    func rejectionNeedsAWitness() throws {
        let found = try reported()
        func reject(_ found: StoreState) throws {
            _ = try head(accepting: .any).rejection(of: found, at: 7, keyedRequestsFrom: 0)
        }
        #expect(throws: OperationalError.self, "it has followed nothing") { try reject(found) }
        try head().compare(state(), of: "db")
        try reject(found)
        var none = found
        none.reported = nil
        #expect(throws: OperationalError.self, "there is no report") { try reject(none) }
        var other = found
        other.asked?.tag = tag(3, record: 9)
        #expect(throws: OperationalError.self, "another history") { try reject(other) }
        try head().compare(state(changes: [10, 21]), of: "db")
        #expect(throws: OperationalError.self, "it has followed more") { try reject(found) }
    }

    @Test func aReportOfLostChangesIsNotRejected() throws {
        try head().compare(state(), of: "db")
        var found = try reported()
        var restoration = AcceptedRestoration(at: 5)
        restoration.repeated = AcceptedRestoration.Repeated(former: 0, position: 1, keyedRequestsFrom: 9)
        accept(restoration, in: &found)
        #expect(throws: OperationalError.self) {
            try head(accepting: .any).rejection(of: found, at: 7, keyedRequestsFrom: 0)
        }
    }

    private func kept(after state: StoreState) throws -> StoreHead {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        let head = try FollowedHead(in: DataFolder(folder, absence: .create), under: rows)
        try head.compare(state, of: "db")
        return try #require(head.kept)
    }

    @Test func aRestorationEndsWhatWasBefore() throws {
        try head().compare(state(restored: 7), of: "db")
        // Numbers begin lower after a later restoration, and not after an earlier one.
        #expect(throws: OperationalError.self) { try head().compare(state(changes: [90, 90]), of: "db") }
        try head().compare(state(changes: [1, 1], audit: 1, transactions: 1, restored: 8), of: "db")
        #expect(try head().kept?.changes == [1, 1])
    }

    @Test func aHeadOfAnotherDeploymentDoesNotCount() throws {
        let other = try #require(RowAuthenticator(key: Secret(random: 32)))
        try head(under: other).compare(StoreState(), of: "db")
        try head().compare(state(changes: [100, 100]), of: "db")
        #expect(try head(under: other).kept == nil)
    }

    @Test func anInterruptedWriteLeavesTheHeadBefore() throws {
        for number in 1...3 { try head().compare(state(changes: [UInt64(number), 0]), of: "db") }
        let file = "\(path)/followed-head"
        let whole = try Data(contentsOf: URL(fileURLWithPath: file))
        let found = try (0..<2).map { slot -> UInt64? in
            var torn = whole
            torn.replaceSubrange(slot * 2_048 + 40..<slot * 2_048 + 44, with: [0, 0, 0, 0])
            try torn.write(to: URL(fileURLWithPath: file))
            return try head().kept?.changes[0]
        }
        #expect(Set(found) == [2, 3])
    }

    /// A server and a command on one folder note different changes.
    @Test func processesKeepEachOthersChanges() throws {
        let (server, command) = (try head(), try head())
        try server.compare(state(), of: "db")
        try command.compare(state(), of: "db")
        command.follow(transactions: 9, summary: nil)
        server.follow(transactions: 8, summary: summary(changes: [10, 21], audit: 3))
        let kept = try head().kept
        #expect(kept?.transactions == 9 && kept?.changes == [10, 21])
    }
}
