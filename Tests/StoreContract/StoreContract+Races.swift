import CountersignGate
import CountersignSchemes
import CountersignThreads
import CountersignWire
import Glibc
import Testing

import CountersignAuthority

/// What several threads do to one row at once, each through a store of its own where `openAnother` opens one:
/// one comes first, and the others see it.
extension StoreContract {
    /// Runs `body` on so many threads, which begin together; answers what they answered, in their order.
    package static func racing<Value: Sendable>(
        _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value
    ) throws -> [Value] {
        let race = Race<Value>(count)
        try WorkerThreads(count, purpose: "to race on") {
            let place = race.enter()
            race.leave(place, Result { try body(place) })
        }.join()
        return try race.results.map { try $0.get() }
    }

    package func races() throws {
        let stores = try (0..<8).map { _ in try openAnother() }
        for store in stores { _ = try store.revision() }
        try racingForAName(stores)
        try racingForASlot(stores)
        try racingToSwap(stores)
        try racingToEnd(stores)
        try racingToBegin(stores)
        try followingRacers(stores)
    }

    private func racingForAName(_ stores: [any Store]) throws {
        for round in 0..<5 {
            let draft = try legacyDraft("racer-\(round)")
            let outcomes = try Self.racing(8) { try stores[$0].insert(draft, recording: .counting) }
            #expect(outcomes.filter(\.didChange).count == 1)
            #expect(outcomes.filter { $0 == .taken(.name) }.count == 7)
        }
        let drafts = try (0..<8).map { try legacyDraft("numbered-\($0)", userID: 5_000) }
        let numbers = try Self.racing(8) { try stores[$0].insert(drafts[$0], recording: .counting) }
        #expect(numbers.filter(\.didChange).count == 1, "one account has a user id")
        #expect(numbers.filter { $0 == .taken(.userID) }.count == 7)
    }

    private func racingForASlot(_ stores: [any Store]) throws {
        let account = try added(accountDraft("one-slot"))
        let credential = account.registration?.credential
        for round in 0..<25 {
            let sessions = try (0..<8).map { try Self.session(10_000 + round * 8 + $0, of: account) }
            let ended = try Self.racing(8) { thread in
                let opened = try stores[thread].open(
                    sessions[thread], proving: credential, slots: .single, at: 1)
                guard case .yes(_, let ended, _) = opened else {
                    throw OperationalError(.failed, message: "not opened")
                }
                return ended.map(\.id)
            }.flatMap { $0 }
            let all = try make().sessions(of: account.number)
            #expect(all.filter { $0.end == nil }.count == 1, "round \(round)")
            #expect(
                Set(ended).count == ended.count && ended.count == (round == 0 ? 7 : 8),
                "each was ended by one")
            #expect(all.dropFirst().allSatisfy { $0.end?.reason == .replaced })
        }
    }

    private func racingToSwap(_ stores: [any Store]) throws {
        let account = try added(accountDraft("swapper"))
        for round in 0..<25 {
            let session = try Self.session(20_000 + round, of: account)
            _ = try open(session, .unlimited)
            let outcomes = try Self.racing(8) { thread in
                try stores[thread].swap(
                    session.id, from: session.credentials, to: Self.session(thread, of: account).credentials,
                    at: 7)
            }
            let now = try #require(try make().session(session.id))
            #expect(outcomes.filter { $0 == .yes(now) }.count == 1, "round \(round)")
            #expect(
                outcomes.filter { $0 == .moved(now) }.count == 7,
                "the others are told of the one who was first")
        }
    }

    /// Whatever comes first: once a session has ended, it has ended as one of them said, and nothing changes
    /// it again.
    private func racingToEnd(_ stores: [any Store]) throws {
        for round in 0..<25 {
            let account = try added(accountDraft("ending-\(round)"))
            let session = try Self.session(30_000 + round, of: account)
            let rival = try Self.session(40_000 + round, of: account, at: 50)
            _ = try open(session, .single)
            let next = try Self.session(9, of: account).credentials
            let number = account.number
            let told = try Self.racing(4) { thread -> Bool in
                switch thread {
                case 0:
                    return try !stores[0].end(
                        .one(session.id), with: SessionTermination(.signedOut, at: 5), recording: .counting
                    )
                    .isEmpty
                case 1:
                    _ = try stores[1].swap(session.id, from: session.credentials, to: next, at: 5)
                    return false
                case 2:
                    let opened = try stores[2].open(
                        rival, proving: account.registration?.credential, slots: .single, at: 5)
                    guard case .yes(_, let ended, _) = opened else { return false }
                    return ended.contains { $0.id == session.id }
                default:
                    let changed = try stores[3].change(
                        number, if: .anything, applying: .lock, at: 5, recording: .counting)
                    guard case .yes(let ended) = changed else {
                        throw OperationalError(.failed, message: "not locked")
                    }
                    return ended.contains(session.id)
                }
            }
            #expect(told.filter { $0 }.count == 1, "round \(round): one has ended it, and knows")
            let over = try #require(try make().session(session.id))
            #expect(over.end != nil)
            #expect(try make().swap(session.id, from: over.credentials, to: next, at: 9) == .moved(over))
            #expect(
                try make().sessions(of: account.number).allSatisfy { $0.end != nil },
                "a locked account has none")
        }
    }

    private func racingToBegin(_ stores: [any Store]) throws {
        for round in 0..<25 {
            let request = IdempotentRequest(
                scope: .account(7), key: [UInt8(truncatingIfNeeded: round)], digest: [1], begun: 9_000)
            let states = try Self.racing(8) { try stores[$0].begin(request, within: .init()) }
            #expect(
                states.filter { $0 == .begun }.count == 1 && states.filter { $0 == .unfinished }.count == 7)
        }
    }

    /// A reader that follows changes misses none while other threads write.
    private func followingRacers(_ stores: [any Store]) throws {
        let account = try added(accountDraft("followed-racers"))
        let start = try make().sessionChange()
        let done = Race<Void>(0)
        let outcomes = try Self.racing(5) { thread -> [SessionID: StoredSession] in
            guard thread == 0 else {
                // Also where this one fails: the follower waits for all.
                defer { done.leave(thread, .success(())) }
                for turn in 0..<30 {
                    let session = try Self.session(50_000 + thread * 100 + turn, of: account)
                    guard
                        case .yes(let opened, _, _) = try stores[thread].open(
                            session, proving: account.registration?.credential, slots: .limit(80), at: 5)
                    else { throw OperationalError(.failed, message: "not opened") }
                    _ = try stores[thread].swap(
                        opened.id, from: opened.credentials, to: opened.credentials, at: 6)
                }
                return [:]
            }
            var (seen, last, isLast) = ([SessionID: StoredSession](), start, false)
            while true {
                let page = try stores[0].sessions(changedAfter: last, limit: 7)
                for session in page { seen[session.id] = session }
                if let change = page.last?.change { last = change }
                if isLast, page.isEmpty { return seen }
                isLast = done.count == 4
                // Leaves the database to the others.
                if page.isEmpty { sched_yield() }
            }
        }
        let all = try make().sessions(changedAfter: start, limit: 1_000)
        #expect(all.count == 120 && all.filter { $0.end == nil }.count == 80)
        #expect(outcomes[0] == Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0) }))
    }
}

/// Where threads meet before they start, and leave what they found.
private final class Race<Value: Sendable>: Sendable {
    private struct State {
        var entered = 0
        var left: [Int: Result<Value, any Error>] = [:]
    }

    private let expected: Int
    private let state = Monitor(State())

    init(_ expected: Int) { self.expected = expected }

    var count: Int { state.with { $0.left.count } }
    var results: [Result<Value, any Error>] {
        state.with { $0.left.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// The thread's place, once all are there.
    func enter() -> Int {
        let place = state.with { state in
            defer { state.entered += 1 }
            return state.entered
        }
        state.wakeAll()
        return state.wait { $0.entered < expected ? nil : place }
    }

    func leave(_ place: Int, _ result: Result<Value, any Error>) { state.with { $0.left[place] = result } }
}
