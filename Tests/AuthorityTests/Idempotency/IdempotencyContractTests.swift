import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import ScriptedClock
import Testing

@testable import CountersignAuthority

/// An implementation of the port `IdempotencyStore`, as the contract opens it.
struct IdempotencyImplementation: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Opens the store of that folder, at first an empty one; the second part writes what waits and closes
    /// it.
    let open: @Sendable (_ folder: String) throws -> (any IdempotencyStore, close: () -> Void)

    static let all = [
        IdempotencyImplementation(testDescription: "rows of SQLite") { folder in
            let store = StorePlace.sqlite(path: try DataFolder(folder, absence: .create).database).open()
            try store.prepare()
            let writer = try GroupWriter(store)
            return (
                StoredRequests(writer),
                {
                    writer.stop()
                    store.close()
                }
            )
        },
        IdempotencyImplementation(testDescription: "log") { folder in
            let requests = try LoggedRequests(.test(folder))
            return (requests, { requests.stop() })
        },
    ]
}

extension RequestLog {
    static func test(_ folder: String, segmentBytes: Int = 1 << 20) throws -> RequestLog {
        try RequestLog(
            in: DataFolder(folder, absence: .create), keys: .test, segmentBytes: segmentBytes)
    }
}

extension RequestLogKeys {
    static let test = RequestLogKeys(Secret(copying: [UInt8](repeating: 7, count: 32).span))
}

/// Every implementation fulfils the contract of the port, whether it stays open or is opened anew between
/// the calls.
@Suite struct IdempotencyContractTests {
    /// The store of a folder, opened anew before each call if that is asked for.
    private final class Place {
        let folder = TemporaryFolder()
        private let implementation: IdempotencyImplementation
        private let isReopened: Bool
        private var opened: (any IdempotencyStore, close: () -> Void)?

        init(_ implementation: IdempotencyImplementation, reopening isReopened: Bool) {
            (self.implementation, self.isReopened) = (implementation, isReopened)
        }

        deinit { opened?.close() }

        var store: any IdempotencyStore {
            get throws {
                if isReopened {
                    opened?.close()
                    opened = nil
                }
                if let opened { return opened.0 }
                let made = try implementation.open(folder.data)
                opened = made
                return made.0
            }
        }

        func begin(
            _ request: IdempotentRequest, within bounds: IdempotencyBounds = .init()
        ) async throws -> IdempotencyState { try await store.begin(request, within: bounds) }

        func finish(
            _ request: IdempotentRequest, bytes: Int = 0, within bounds: IdempotencyBounds = .init()
        ) async throws {
            let body = [UInt8](repeating: 1, count: bytes)
            try await store.finish(
                request, with: StoredAnswer(status: 200, fields: [], body: body), within: bounds)
        }

        /// Begins keys 0, 1, … of that scope until one is refused; answers how many came about.
        func fill(_ scope: IdempotencyScope, within bounds: IdempotencyBounds) async throws -> Int {
            for key in 0..<100 where try await begin(request(scope, key: key), within: bounds) == .full {
                return key
            }
            return 100
        }
    }

    private static let cases = IdempotencyImplementation.all.flatMap { [($0, false), ($0, true)] }

    private static func request(_ scope: IdempotencyScope, key: Int) -> IdempotentRequest {
        IdempotentRequest(scope: scope, key: [UInt8(key)], digest: [1], begun: Int64(1_000 + key))
    }

    private static func release(_ number: Int) throws -> IdempotencyScope {
        .release(try #require(KeyID("r_\(number)")))
    }

    @Test(arguments: cases)
    func onceAndAgain(_ implementation: IdempotencyImplementation, isReopened: Bool) async throws {
        let place = Place(implementation, reopening: isReopened)
        let request = IdempotentRequest(scope: .account(1), key: [1, 0], digest: [2], begun: 500)
        #expect(try await place.begin(request) == .begun)
        #expect(try await place.begin(request) == .unfinished)
        var other = request
        other.digest = [3]
        #expect(try await place.begin(other) == .otherRequest)
        var elsewhere = request
        elsewhere.scope = .account(2)
        #expect(try await place.begin(elsewhere) == .begun)

        let answer = StoredAnswer(
            status: 201,
            fields: [
                StoredAnswer.Field(name: "set-cookie", value: [0, 255, 13]),
                StoredAnswer.Field(name: "set-cookie", value: []),
            ], body: [UInt8](repeating: 1, count: 100_000))
        try await place.store.finish(other, with: answer, within: .init())
        #expect(try await place.begin(request) == .unfinished, "another's answer is not ours")
        try await place.store.finish(request, with: answer, within: .init())
        var later = request
        later.begun = 600
        #expect(try await place.begin(later) == .finished(answer))
        try await place.store.finish(
            request, with: StoredAnswer(status: 500, fields: [], body: []), within: .init())
        try await place.store.abandon(request)
        #expect(try await place.begin(request) == .finished(answer), "what is done stays done")

        try await place.store.abandon(elsewhere)
        #expect(try await place.begin(elsewhere) == .begun)
        try await place.store.finish(
            elsewhere, with: StoredAnswer(status: 204, fields: [], body: []), within: .init())
        #expect(
            try await place.begin(elsewhere) == .finished(StoredAnswer(status: 204, fields: [], body: [])))

        let third = try IdempotentRequest(
            scope: Self.release(1), key: [9], digest: [9], begun: 700)
        #expect(try await place.begin(third) == .begun)
        try place.store.forget(before: 700)
        #expect(try await place.begin(third) == .unfinished)
        #expect(try await place.begin(later) == .begun)
        try await place.store.finish(request, with: answer, within: .init())
        #expect(try await place.begin(later) == .unfinished, "an answer to a beginning that was forgotten")
    }

    @Test(arguments: cases)
    func boundsOfKeys(_ implementation: IdempotencyImplementation, isReopened: Bool) async throws {
        let place = Place(implementation, reopening: isReopened)
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 40, bytes: 1 << 20)
        bounds.account.keys = 7
        #expect(try await place.fill(.account(1), within: bounds) == 7)
        #expect(
            try await place.begin(Self.request(.account(1), key: 3), within: bounds) == .unfinished,
            "what is remembered is answered all the same")
        try await place.store.abandon(Self.request(.account(1), key: 3))
        #expect(
            try await place.begin(Self.request(.account(1), key: 50), within: bounds) == .begun,
            "what was given up makes room")
        #expect(try await place.begin(Self.request(.account(1), key: 51), within: bounds) == .full)
        // A release's callers may use what nobody else asks for: all but the last eighth.
        #expect(try await place.fill(Self.release(1), within: bounds) == 28)
        #expect(try await place.fill(Self.release(6), within: bounds) == 0, "the same network")
        // Of that, each holder without a key gets one, and the others get none.
        for number in Int64(2)...7 {
            #expect(try await place.fill(.account(number), within: bounds) == (number < 7 ? 1 : 0))
        }
        #expect(try await place.fill(Self.release(7), within: bounds) == 0)
        try place.store.forget(before: 1_001)
        #expect(try await place.begin(Self.request(.account(1), key: 60), within: bounds) == .begun)
        #expect(try await place.begin(Self.request(Self.release(1), key: 60), within: bounds) == .begun)
    }

    @Test(arguments: cases)
    func boundsOfBytes(_ implementation: IdempotencyImplementation, isReopened: Bool) async throws {
        let place = Place(implementation, reopening: isReopened)
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 1_000, bytes: 1_320)
        bounds.account.bytes = 300
        /// Whether a response of that many bytes to a new key is kept.
        func isKept(_ key: Int, of scope: IdempotencyScope, bytes: Int) async throws -> Bool {
            let request = Self.request(scope, key: key)
            #expect(try await place.begin(request, within: bounds) == .begun, "bytes refuse no key")
            try await place.finish(request, bytes: bytes, within: bounds)
            guard case .finished(let answer) = try await place.begin(request, within: bounds) else {
                return false
            }
            #expect(answer.status == 200 && [0, bytes].contains(answer.body.count))
            return !answer.body.isEmpty
        }
        let release = try Self.release(1)
        for key in 0..<3 { #expect(try await isKept(key, of: .account(1), bytes: 100)) }
        #expect(try await !isKept(3, of: .account(1), bytes: 100), "the account's own bound")
        #expect(try await isKept(0, of: release, bytes: 110))
        #expect(try await isKept(0, of: .account(2), bytes: 850))
        #expect(try await !isKept(1, of: release, bytes: 110), "it has more than its share of the rest")
        #expect(
            try await isKept(0, of: .account(3), bytes: 110), "the rest is for those without a key")
        #expect(try await !isKept(0, of: .account(4), bytes: 100), "there is no more in all")
        try place.store.forget(before: 1_001)
        #expect(try await isKept(4, of: .account(1), bytes: 100))
        #expect(try await isKept(2, of: release, bytes: 100))
    }

    @Test(
        "where room is needed, the oldest finished requests of the holder with the most give way",
        arguments: cases)
    func displacement(_ implementation: IdempotencyImplementation, isReopened: Bool) async throws {
        let place = Place(implementation, reopening: isReopened)
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 60, bytes: 1 << 20)
        bounds.fewKeys = 2
        // The first holds most; its oldest request still runs.
        var held: [Int64: Int] = [:]
        for account in Int64(1)...60 {
            for key in 0..<60 {
                let request = Self.request(.account(account), key: key)
                guard try await place.begin(request, within: bounds) == .begun else { break }
                if account != 1 || key > 0 { try await place.finish(request) }
                held[account] = key + 1
            }
        }
        #expect(held == [1: 53, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1])
        var newcomer = Self.request(.account(99), key: 0)
        newcomer.begun = 1_000 + Int64(KeyRetention.lowest)
        #expect(
            try await place.begin(newcomer, within: bounds) == .full, "nothing is old enough to be forgotten")
        bounds.floor = 86_400
        newcomer.begun = 50_000
        #expect(try await place.begin(newcomer, within: bounds) == .full, "a setting says how old that is")
        (bounds.floor, bounds.latest) = (KeyRetention.lowest, nil)
        #expect(try await place.begin(newcomer, within: bounds) == .full, "no clock is trusted")
        bounds.latest = 1_000 + Int64(KeyRetention.lowest)
        #expect(try await place.begin(newcomer, within: bounds) == .full, "one clock runs ahead")
        bounds.latest = 49_000
        #expect(try await place.begin(newcomer, within: bounds) == .begun)
        #expect(
            try await place.begin(Self.request(.account(1), key: 0), within: bounds) == .unfinished,
            "what runs is never forgotten")
        for key in 1...16 {
            #expect(
                try await place.begin(Self.request(.account(1), key: key)) == .begun, "\(key) was forgotten")
        }
        let answer = StoredAnswer(status: 200, fields: [], body: [])
        #expect(
            try await place.begin(Self.request(.account(1), key: 17), within: bounds) == .finished(answer))
        for account in Int64(2)...8 {
            let state = try await place.begin(Self.request(.account(account), key: 0), within: bounds)
            #expect(state == .finished(answer))
        }
    }

    @Test("where nobody holds much, the oldest finished requests of all give way", arguments: cases)
    func displacementOfAll(_ implementation: IdempotencyImplementation, isReopened: Bool) async throws {
        let place = Place(implementation, reopening: isReopened)
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 40, bytes: 1 << 20)
        for account in 1...35 {
            let request = Self.request(.account(Int64(account)), key: account)
            #expect(try await place.begin(request, within: bounds) == .begun)
            // Every third one runs on.
            if account % 3 != 0 { try await place.finish(request) }
        }
        var stranger = try Self.request(Self.release(1), key: 0)
        stranger.begun = 1_010 + Int64(bounds.floor)
        #expect(try await place.begin(stranger, within: bounds) == .begun)
        for account in 1...35 {
            let state = try await place.begin(
                Self.request(.account(Int64(account)), key: account), within: bounds)
            if account % 3 == 0 {
                #expect(state == .unfinished)
            } else {
                let isYoung = account >= 10
                #expect((state != .begun) == isYoung, "\(account)")
            }
        }
    }

    @Test("an account that has as many as it may loses its own oldest", arguments: cases)
    func displacementWithinAnAccount(
        _ implementation: IdempotencyImplementation, isReopened: Bool
    ) async throws {
        let place = Place(implementation, reopening: isReopened)
        var bounds = IdempotencyBounds()
        bounds.account.keys = 5
        for account in Int64(1)...2 {
            for key in 0..<5 {
                #expect(
                    try await place.begin(Self.request(.account(account), key: key), within: bounds) == .begun
                )
                try await place.finish(Self.request(.account(account), key: key))
            }
        }
        var another = Self.request(.account(1), key: 60)
        another.begun = 1_002 + Int64(bounds.floor)
        #expect(try await place.begin(another, within: bounds) == .begun)
        let answer = StoredAnswer(status: 200, fields: [], body: [])
        #expect(try await place.begin(Self.request(.account(1), key: 2), within: bounds) == .finished(answer))
        #expect(try await place.begin(Self.request(.account(1), key: 1), within: bounds) == .begun)
        #expect(try await place.begin(Self.request(.account(2), key: 0), within: bounds) == .finished(answer))
    }

    @Test("of many copies at once one begins", arguments: IdempotencyImplementation.all)
    func races(_ implementation: IdempotencyImplementation) async throws {
        let place = Place(implementation, reopening: false)
        let store = try place.store
        for round in 0..<20 {
            let states = try await withThrowingTaskGroup(of: IdempotencyState.self) { group in
                for copy in 0..<48 {
                    let request = Self.request(.account(Int64(copy / 8)), key: round)
                    group.addTask { try await store.begin(request, within: .init()) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(states.count { $0 == .begun } == 6 && states.count { $0 == .unfinished } == 42)
        }
    }
}
