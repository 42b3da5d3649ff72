import CountersignAuthority
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Testing

/// How much is remembered of what is done once. On a store that remembers nothing yet.
extension StoreContract {
    private func begin(_ scope: IdempotencyScope, _ key: Int, _ bounds: IdempotencyBounds) throws
        -> IdempotencyState
    {
        try make().begin(Self.request(scope, key), within: bounds)
    }

    private static func request(_ scope: IdempotencyScope, _ key: Int) -> IdempotentRequest {
        IdempotentRequest(scope: scope, key: [UInt8(key)], digest: [1], begun: Int64(1_000 + key))
    }

    /// Begins keys 0, 1, … of that scope until one is refused; answers how many came about.
    private func fill(_ scope: IdempotencyScope, _ bounds: IdempotencyBounds) throws -> Int {
        for key in 0..<100 where try begin(scope, key, bounds) == .full { return key }
        return 100
    }

    private func release(_ number: Int) throws -> IdempotencyScope {
        .release(try #require(KeyID("r_\(number)")))
    }

    package func boundsOfKeys() throws {
        try make().prepare()
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 40, bytes: 1 << 20)
        bounds.account.keys = 7
        #expect(try fill(.account(1), bounds) == 7)
        #expect(
            try begin(.account(1), 3, bounds) == .unfinished, "what is remembered is answered all the same")
        try make().abandon(Self.request(.account(1), 3))
        #expect(try begin(.account(1), 50, bounds) == .begun, "what was given up makes room")
        #expect(try begin(.account(1), 51, bounds) == .full)
        // A release's callers may use what nobody else asks for: all but the last eighth.
        #expect(try fill(release(1), bounds) == 28)
        // Of that, each holder without a key gets one, and the others get none.
        #expect(try fill(release(1), bounds) == 28)
        #expect(try fill(release(6), bounds) == 0, "the same network")
        for number in Int64(2)...7 { #expect(try fill(.account(number), bounds) == (number < 7 ? 1 : 0)) }
        #expect(try fill(release(7), bounds) == 0)
        // Its day is over: the keys of account 1 among others.
        #expect(try make().forgetRequests(before: 1_001, limit: 100) == 7)
        #expect(try begin(.account(1), 60, bounds) == .begun)
        #expect(try begin(release(1), 60, bounds) == .begun)
    }

    package func boundsOfBytes() throws {
        try make().prepare()
        var bounds = IdempotencyBounds()
        bounds.all = IdempotencyUsage(keys: 1_000, bytes: 1_200)
        bounds.account.bytes = 300
        /// Whether a response of that many bytes to a new key is kept.
        func isKept(_ key: Int, of scope: IdempotencyScope, bytes: Int) throws -> Bool {
            let body = [UInt8](repeating: 1, count: bytes)
            #expect(try begin(scope, key, bounds) == .begun, "bytes refuse no key")
            try make().finish(
                Self.request(scope, key), with: StoredAnswer(status: 200, fields: [], body: body),
                within: bounds)
            guard case .finished(let answer) = try begin(scope, key, bounds) else { return false }
            return answer.body == body
        }
        for key in 0..<3 { #expect(try isKept(key, of: .account(1), bytes: 100)) }
        #expect(try !isKept(3, of: .account(1), bytes: 100), "the account's own bound")
        #expect(try isKept(0, of: release(1), bytes: 100))
        #expect(try isKept(0, of: .account(2), bytes: 700))
        #expect(try !isKept(1, of: release(1), bytes: 100), "it has more than its share of the rest")
        #expect(try isKept(0, of: .account(3), bytes: 100), "what is left is for those who have nothing")
        #expect(try !isKept(0, of: .account(4), bytes: 100), "there is no more in all")
        #expect(try make().forgetRequests(before: 1_001, limit: 100) == 5)
        #expect(try isKept(4, of: .account(1), bytes: 100))
        #expect(try isKept(2, of: release(1), bytes: 100))
    }
}
