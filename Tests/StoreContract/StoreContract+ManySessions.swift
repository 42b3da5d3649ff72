import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire
import Testing

/// Accounts that sign in again and again, and which releases their sessions are renewed under.
extension StoreContract {
    package func manySessions() throws {
        let account = try added(accountDraft("busy"))
        let all = SlotRule.mostLive
        try fill(account, with: 110_000..<110_000 + all)
        #expect(try make().liveSessions(of: account.number, newest: all + 5).count == all)

        let (ended, forgotten) = try began(120_000, of: account, .unlimited, at: 8_500)
        #expect(try ended.map(\.id) == [Self.id(110_000)], "there is no room for more, and the oldest goes")
        #expect(
            ended.map(\.end) == [SessionTermination(.replaced, at: 8_500, by: "phone")] && forgotten.isEmpty)
        let newest = try make().liveSessions(of: account.number, newest: 3)
        #expect(try newest.map(\.id) == [110_998, 110_999, 120_000].map(Self.id))

        // All of the others end, which are more than are told of.
        let (replaced, first) = try began(120_001, of: account, .single, at: 8_600)
        #expect(replaced.count == all)
        let over = Set(replaced.map(\.id)).union([try Self.id(110_000)])
        #expect(!first.isEmpty && over.isSuperset(of: first))
        var gone = Set(first)
        for number in 0..<6 {
            let (_, more) = try began(120_002 + number, of: account, .single, at: 8_700 + Int64(number))
            #expect(gone.isDisjoint(with: more))
            gone.formUnion(more)
        }
        for id in gone { #expect(try make().session(id) == nil) }
        let rest = try make().sessions(of: account.number)
        #expect(rest.filter { $0.end == nil }.map(\.id) == [try Self.id(120_007)])
        let told = rest.filter { $0.end != nil }
        #expect(told.count == SlotRule.mostEnded, "no account is remembered by more")
        #expect(try told.map(\.id).contains(Self.id(120_006)), "those that ended last are kept")
        #expect(gone.count == all + 1 + 6 - SlotRule.mostEnded)
    }

    /// Together, because each by itself would wait for the disk. One is a second younger than the one before.
    private func fill(_ account: Account, with numbers: Range<Int>) throws {
        var changes: [(any Store) throws(OperationalError) -> Void] = []
        for number in numbers {
            let age = Int64(number - numbers.lowerBound)
            let session = try Self.session(number, of: account, at: 7_000 + age)
            changes.append(Self.opening(session, account.registration?.credential))
        }
        #expect(try make().applyTogether(changes).allSatisfy { $0 == nil })
    }

    private static func opening(
        _ session: StoredSession, _ credential: [UInt8]?
    ) -> (any Store) throws(OperationalError) -> Void {
        func open(_ store: any Store) throws(OperationalError) {
            _ = try store.open(session, proving: credential, slots: .unlimited, at: session.created)
        }
        return open
    }

    private func began(
        _ number: Int, of account: Account, _ slots: SlotRule, at now: Int64
    ) throws -> (ended: [StoredSession], forgotten: [SessionID]) {
        guard
            case .yes(_, let ended, let forgotten) = try open(
                Self.session(number, of: account, at: now), slots)
        else { throw OperationalError(.failed, message: "not opened") }
        return (ended, forgotten)
    }

    package func releasesOfSessions() throws {
        let (old, new) = (KeyID("r_old"), KeyID("r_new"))
        let app = try #require(AppName("demo"))
        #expect(try make().liveSessions(of: app, usedSince: 0).isEmpty)
        for (number, release) in [(130_000, old), (130_001, old), (130_002, nil), (130_003, new)] {
            let account = try added(accountDraft("of-release-\(number)", of: "demo"))
            var session = try Self.session(number, of: account)
            session.release = release
            guard case .yes(let row, _, _) = try open(session, .single) else {
                throw OperationalError(.failed, message: "not opened")
            }
            #expect(row.release == release)
            #expect(try make().session(row.id) == row)
        }
        _ = try make().end(
            .one(Self.id(130_001)), with: SessionTermination(.revoked, at: 1_100), recording: nil)
        let ios = try #require(Platform("ios"))
        #expect(
            try make().liveSessions(of: app, usedSince: 0) == [
                LiveSessionCount(platform: ios, release: nil, count: 1),
                LiveSessionCount(platform: ios, release: new, count: 1),
                LiveSessionCount(platform: ios, release: old, count: 1),
            ])
        let row = try #require(try make().session(Self.id(130_000)))
        let renewed = try make().swap(row.id, from: row.credentials, to: row.credentials, by: new, at: 1_200)
        guard case .yes(let now) = renewed else { throw OperationalError(.failed, message: "not swapped") }
        #expect(now.release == new)
        #expect(try make().session(row.id) == now)
        guard
            case .yes(let same) = try make().swap(
                row.id, from: row.credentials, to: row.credentials, at: 1_300)
        else {
            throw OperationalError(.failed, message: "not swapped")
        }
        #expect(same.release == new, "who tells of none changes none")
    }
}
