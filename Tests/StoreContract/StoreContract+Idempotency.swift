import CountersignAuthority
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Testing

/// Requests that are done once.
extension StoreContract {
    package func idempotency() throws {
        let request = IdempotentRequest(scope: .account(1), key: [1, 0], digest: [2], begun: 500)
        let revision = try make().revision()
        #expect(try make().begin(request, within: .init()) == .begun)
        #expect(try make().begin(request, within: .init()) == .unfinished)
        var other = request
        other.digest = [3]
        #expect(try make().begin(other, within: .init()) == .otherRequest)
        var elsewhere = request
        elsewhere.scope = .account(2)
        #expect(try make().begin(elsewhere, within: .init()) == .begun)

        let answer = StoredAnswer(
            status: 201,
            fields: [
                StoredAnswer.Field(name: "set-cookie", value: [0, 255, 13]),
                StoredAnswer.Field(name: "set-cookie", value: []),
            ], body: [UInt8](repeating: 1, count: 100_000))
        try make().finish(other, with: answer, within: .init())
        #expect(try make().begin(request, within: .init()) == .unfinished, "another's answer is not ours")
        try make().finish(request, with: answer, within: .init())
        var later = request
        later.begun = 600
        #expect(try make().begin(later, within: .init()) == .finished(answer))
        try make().finish(
            request, with: StoredAnswer(status: 500, fields: [], body: []), within: .init())
        try make().abandon(request)
        #expect(try make().begin(request, within: .init()) == .finished(answer), "what is done stays done")

        try make().abandon(elsewhere)
        #expect(try make().begin(elsewhere, within: .init()) == .begun)
        try make().finish(
            elsewhere, with: StoredAnswer(status: 204, fields: [], body: []), within: .init())
        #expect(
            try make().begin(elsewhere, within: .init())
                == .finished(StoredAnswer(status: 204, fields: [], body: [])))

        let third = try IdempotentRequest(
            scope: .release(#require(KeyID("r"))), key: [9], digest: [9], begun: 700)
        #expect(try make().begin(third, within: .init()) == .begun)
        #expect(try make().forgetRequests(before: 700, limit: 1) == 1)
        #expect(try make().forgetRequests(before: 700, limit: 10) == 1)
        #expect(try make().forgetRequests(before: 700, limit: 10) == 0)
        #expect(try make().begin(third, within: .init()) == .unfinished)
        #expect(try make().begin(later, within: .init()) == .begun)
        try make().finish(request, with: answer, within: .init())
        #expect(
            try make().begin(later, within: .init()) == .unfinished,
            "an answer to a beginning that was forgotten")
        #expect(try make().revision() == revision)
    }

    /// Requests of another store are kept as they were, and what is there already is not lost.
    package func adoption() throws {
        func request(_ number: UInt8, begun: Int64 = 1_000) -> IdempotentRequest {
            IdempotentRequest(scope: .account(77), key: [77, number], digest: [number], begun: begun)
        }
        func answer(_ number: UInt8) -> StoredAnswer {
            StoredAnswer(status: 200 + Int(number), fields: [], body: [1, number])
        }
        func state(_ request: IdempotentRequest) throws -> IdempotencyState {
            try make().begin(request, within: .init())
        }
        #expect(try state(request(1)) == .begun)
        #expect(try state(request(2)) == .begun)
        try make().finish(request(2), with: answer(2), within: .init())
        var stranger = try IdempotentRequest(
            scope: .release(#require(KeyID("r_77"))), key: [78], digest: [5], begun: 1_000)
        stranger.holder = .network([1, 2, 3, 4])
        let held = [
            HeldRequest(request(1), answer: answer(1)), HeldRequest(request(2), answer: nil),
            HeldRequest(request(3), answer: answer(3)), HeldRequest(stranger, answer: nil),
            HeldRequest(request(2, begun: 900), answer: answer(9)),
        ]
        for _ in 0..<2 {
            try make().adopt(held)
            for number: UInt8 in 1...3 { #expect(try state(request(number)) == .finished(answer(number))) }
            #expect(try state(stranger) == .unfinished)
        }
        try make().adopt([HeldRequest(request(2, begun: 1_500), answer: nil)])
        #expect(try state(request(2, begun: 1_500)) == .unfinished, "a later beginning replaces another")
        #expect(try make().idempotentRequests(of: 77).map(\.request.begun) == [1_000, 1_000, 1_500])
    }
}
