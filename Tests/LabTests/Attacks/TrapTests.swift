import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct TrapTests {
    private static let payment = RawRequest(
        method: "POST", target: "/transfer", fields: [("Authorization", "Bearer 0123456789abcdef")],
        body: Array("to=a&amount=1".utf8))

    /// A server that executes requests with the right token, and records the others.
    private final class Till {
        var done = 0
        var refused: [RawRequest] = []

        func answer(_ request: RawRequest) -> RawResponse {
            guard request.fields["Authorization"] == payment.fields["Authorization"] else {
                refused.append(request)
                return RawResponse(401)
            }
            done += 1
            return RawResponse(200)
        }
    }

    @Test func oneCopyAlwaysGoesThroughAndTheAppIsShownSomethingElse() {
        for (trap, shown, done) in [
            (RetryTrapKind.secondCopy, 200, 2), (.spoiltCopy, 401, 1), (.tokenRanOut, 200, 1),
            (.silence, nil, 1),
        ] as [(RetryTrapKind, Int?, Int)] {
            let (till, state) = (Till(), RetryTrapHandler { _, _, _ in })
            let answer = state.handle(TrapTests.payment, with: trap) { till.answer($0) }
            #expect(answer?.status == shown)
            #expect(till.done == done)
            #expect(till.refused.count == (trap == .spoiltCopy ? 1 : 0))
            #expect(state.isTriggered)
            #expect(answer?.text.contains("-101") ?? false == (trap == .tokenRanOut))
        }
    }

    @Test func itSpringsOnceAndAtPaymentsOnly() {
        let (till, state) = (Till(), RetryTrapHandler { _, _, _ in })
        let look = RawRequest(method: "GET", target: "/balance", fields: TrapTests.payment.fields)
        #expect(state.handle(look, with: .silence) { till.answer($0) } == RawResponse(200))
        #expect(!state.isTriggered)
        #expect(state.handle(TrapTests.payment, with: .silence) { till.answer($0) } == nil)
        #expect(state.handle(TrapTests.payment, with: .silence) { till.answer($0) } == RawResponse(200))
        #expect(till.done == 3)
    }

    /// A copy with a corrupted signature is refused, in every place where a scheme writes it.
    @Test(arguments: MACPlaceTests.requests) func aSpoiltCopyIsAnotherRequestOfTheSameCall(
        _ request: RawRequest
    ) {
        var request = request
        request.method = "POST"
        request.target = "/transfer"
        let state = RetryTrapHandler { _, _, _ in }
        var sent: [RawRequest] = []
        _ = state.handle(request, with: .spoiltCopy) {
            sent.append($0)
            return RawResponse(200)
        }
        #expect(sent.count == 2)
        #expect(sent.first == request)
        #expect(sent.last != request)
        #expect(sent.last?.target == request.target)
    }
}
