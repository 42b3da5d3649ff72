import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct TrapTests {
    private static let payment = RawRequest(
        "POST", "/transfer", fields: [("Authorization", "Bearer 0123456789abcdef")], body: Array("to=a&amount=1".utf8))

    /// A server that does whatever bears the right token, and remembers the rest.
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
            (Trap.secondCopy, 200, 2), (.spoiltCopy, 401, 1), (.tokenRanOut, 200, 1), (.silence, nil, 1),
        ] as [(Trap, Int?, Int)] {
            let (till, state) = (Till(), TrapState { _, _, _ in })
            let answer = state.meet(TrapTests.payment, by: trap) { till.answer($0) }
            #expect(answer?.status == shown)
            #expect(till.done == done)
            #expect(till.refused.count == (trap == .spoiltCopy ? 1 : 0))
            #expect(state.isSprung)
            #expect(answer?.text.contains("-101") ?? false == (trap == .tokenRanOut))
        }
    }

    @Test func itSpringsOnceAndAtPaymentsOnly() {
        let (till, state) = (Till(), TrapState { _, _, _ in })
        let look = RawRequest("GET", "/balance", fields: TrapTests.payment.fields)
        #expect(state.meet(look, by: .silence) { till.answer($0) } == RawResponse(200))
        #expect(!state.isSprung)
        #expect(state.meet(TrapTests.payment, by: .silence) { till.answer($0) } == nil)
        #expect(state.meet(TrapTests.payment, by: .silence) { till.answer($0) } == RawResponse(200))
        #expect(till.done == 3)
    }

    /// What bears a signature is refused for it, whatever the scheme writes it in.
    @Test(arguments: MACPlaceTests.requests) func aSpoiltCopyIsAnotherRequestOfTheSameCall(_ request: RawRequest) {
        var request = request
        request.method = "POST"
        request.target = "/transfer"
        let state = TrapState { _, _, _ in }
        var sent: [RawRequest] = []
        _ = state.meet(request, by: .spoiltCopy) {
            sent.append($0)
            return RawResponse(200)
        }
        #expect(sent.count == 2)
        #expect(sent.first == request)
        #expect(sent.last != request)
        #expect(sent.last?.target == request.target)
    }
}
