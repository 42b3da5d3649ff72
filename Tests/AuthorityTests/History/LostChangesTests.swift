import CountersignGate
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// The changes that a promoted standby lacks are found without a gap, or not at all.
@Suite struct LostChangesTests {
    private let rows: RowAuthenticator
    private let folder: DataFolder
    /// The sealed summaries of a store after each of four changes.
    private let summaries: [[UInt8]]

    init() throws {
        let rows = try #require(RowAuthenticator(key: Secret(random: 32)))
        self.rows = rows
        folder = try DataFolder(
            FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path,
            absence: .create)
        summaries = (UInt64(0)...4).map { number in
            var (first, second) = (RowDigest(), RowDigest())
            (first.changes, second.changes) = (10, 20 + number)
            let audit = AuditHead(number: 3, tag: AuditChain.firstTag)
            return rows.seal(RowSummary(of: [first, second], audit: audit))
        }
    }

    private func head(_ number: Int) -> StoreHead {
        var head = StoreHead()
        (head.changes, head.audit.number) = ([10, 20 + UInt64(number)], 3)
        return head
    }

    /// The change that leads to that state, made at that second.
    private func change(_ number: Int, rows: [[UInt8]] = []) -> StoreChange {
        var change = StoreChange(
            before: StoreChange.state(summaries[number - 1]), after: StoreChange.state(summaries[number]),
            position: head(number).position, rows: rows)
        change.time = Int64(number)
        return change
    }

    private func lost(
        from state: Int, to head: Int, in changes: [StoreChange], within seconds: Int64 = 10
    ) throws -> LostChanges {
        var store = StoreState()
        store.summary = summaries[state]
        return try LostChanges(
            from: store, called: "db", to: [self.head(0), self.head(head)], in: changes, within: seconds)
    }

    @Test(
        "they lead from the store's state to what was followed, whatever node has made them",
        arguments: [
            (0, 4, [4, 2, 1, 3], 10, 4), (2, 4, [1, 2, 3, 4], 10, 2), (3, 3, [1, 2, 3, 4], 10, 1),
            (0, 4, [1, 3, 4], 10, nil), (0, 4, [2, 3, 4], 10, nil), (0, 4, [1, 2, 3], 10, nil),
            (4, 4, [1, 2, 3, 4], 10, nil), (0, 4, [1, 2, 3, 4], 2, nil), (0, 4, [1, 2, 3, 4], 3, 4),
        ] as [(Int, Int, [Int], Int64, Int?)])
    func found(state: Int, head: Int, numbers: [Int], seconds: Int64, count: Int?) throws {
        let changes = numbers.map { change($0) }
        guard let count else {
            #expect(throws: OperationalError.self) {
                try lost(from: state, to: head, in: changes, within: seconds)
            }
            return
        }
        #expect(try lost(from: state, to: head, in: changes, within: seconds).count == count)
    }

    @Test func aChangeThatMayHaveBeenCommittedCounts() throws {
        var other = change(2)
        other.after = StoreChange.state([1])
        #expect(try lost(from: 0, to: 2, in: [change(1), change(2), other]).count == 3)
    }

    @Test func aFolderKeepsThemAcrossProcessesAndOnlyOwnOnesOpen() throws {
        let file = StoreChangeFile(in: folder)
        let changes = (1...3).map { change($0, rows: [[1, 2, 3]]) }
        for change in changes { file.append(change, under: rows) }
        #expect(StoreChangeFile(in: folder).changes(under: rows) == changes)
        let other = try #require(RowAuthenticator(key: Secret(random: 32)))
        #expect(file.changes(under: other).isEmpty)
        // What was cut off by a crash ends the list.
        let handle = try #require(FileHandle(forUpdatingAtPath: folder.recentChanges))
        try handle.truncate(atOffset: try handle.seekToEnd() - 1)
        #expect(file.changes(under: rows) == Array(changes.prefix(2)))
    }

    @Test func aSessionThatWasOnlyUsedIsNotKept() {
        let row: [String: RowMessage.Value] = ["id": .bytes([7]), "change": .integer(1), "used": .integer(1)]
        var used = row
        (used["change"], used["used"]) = (.integer(2), .integer(2))
        #expect(StoreChange.row(of: .session, changedFrom: row, to: used) == nil)
        used["ended_at"] = .integer(5)
        #expect(StoreChange.row(of: .session, changedFrom: row, to: used) != nil)
        #expect(StoreChange.row(of: .session, changedFrom: row, to: nil) != nil)
        #expect(StoreChange.row(of: .session, changedFrom: nil, to: row) == nil)
        #expect(StoreChange.row(of: .meta, changedFrom: row, to: nil) == nil)
    }

    @Test func theLastStateOfARowCounts() throws {
        func account(_ state: String, isErased: Bool = false) throws -> [UInt8] {
            var row: [String: RowMessage.Value] = [
                "number": .integer(7), "state": .bytes(Array(state.utf8)), "pseudonym": .bytes([1]),
            ]
            if isErased { row["pseudonym"] = nil }
            return try #require(StoreChange.row(of: .account, changedFrom: row, to: row))
        }
        let found = try lost(
            from: 0, to: 2, in: [change(2, rows: [account("active")]), change(1, rows: [account("locked")])])
        #expect(found.accounts == [7: .active] && found.erased.isEmpty)
        let erased = try lost(from: 0, to: 1, in: [change(1, rows: [account("removed", isErased: true)])])
        #expect(erased.erased == [7])
    }

    @Test("a user id that was changed, and webhooks that were removed")
    func userIDsAndWebhooks() throws {
        func account(from: Int64?, to: Int64?) throws -> [UInt8] {
            func row(_ id: Int64?) -> [String: RowMessage.Value] {
                var row: [String: RowMessage.Value] = [
                    "number": .integer(7), "state": .bytes(Array("active".utf8)), "pseudonym": .bytes([1]),
                ]
                row["user_id"] = id.map { .integer($0) }
                return row
            }
            return try #require(StoreChange.row(of: .account, changedFrom: row(from), to: row(to)))
        }
        for (from, to, hasEnded) in [(5, 6, true), (5, nil, true), (nil, 5, false), (5, 5, false)]
            as [(Int64?, Int64?, Bool)]
        {
            let found = try lost(from: 0, to: 1, in: [change(1, rows: [account(from: from, to: to)])])
            #expect(found.accountsWithOtherUserIDs == (hasEnded ? [7] : []))
            #expect(found.remainingWebhooks == nil)
        }
        func webhooks(_ ids: [String]) throws -> [UInt8] {
            var settings = WebhookSettings()
            settings.endpoints = ids.map {
                WebhookEndpoint(
                    id: $0, url: "https://example.com/", app: nil, types: [], reach: .publicAddresses,
                    authorities: nil, created: 1)
            }
            let row: [String: RowMessage.Value] = [
                "name": .bytes(Array("webhooks".utf8)), "value": .bytes(settings.document),
            ]
            return try #require(StoreChange.row(of: .meta, changedFrom: row, to: row))
        }
        let changes = [
            change(2, rows: [try webhooks(["w_2"])]), change(1, rows: [try webhooks(["w_1", "w_2"])]),
        ]
        #expect(try lost(from: 0, to: 2, in: changes).remainingWebhooks == ["w_2"])
        let other: [String: RowMessage.Value] = ["name": .bytes(Array("write-check".utf8))]
        #expect(StoreChange.row(of: .meta, changedFrom: other, to: other) == nil)
    }

    @Test func headsOfTheLostStoreBeyondTheRestorationAreLacking() throws {
        let restoration = AcceptedRestoration(
            at: 5,
            repeated: AcceptedRestoration.Repeated(
                former: 0, position: head(2).position, keyedRequestsFrom: 9))
        #expect(rows.openRestoration(rows.seal(restoration)) == restoration)
        #expect(restoration.lacks(head(3)) && !restoration.lacks(head(2)))
        var later = head(3)
        later.restored = 5
        #expect(!restoration.lacks(later) && !AcceptedRestoration(at: 5).lacks(head(3)))
    }
}
