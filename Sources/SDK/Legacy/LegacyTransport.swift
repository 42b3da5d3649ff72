import CountersignClient
import CountersignTransport
import CountersignWire

/// Carries a legacy client's requests. Answers are kept whole: whether one says that the session is over stands in its body.
struct LegacyTransport: Transport {
    let carrier: any Carrier
    let origin: Origin
    /// Bytes of an answer.
    let most: Int
    /// Renewals are told of: those that go to `renewals`.
    let events: Broadcast<CountersignEvent>
    let renewals: [UInt8]
    /// For one exchange; nil where the carrier alone says how long it takes.
    var patience: Duration?

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        let request = OutgoingRequest(draft, to: origin, body: body)
        let isRenewal = draft.target.prefix { $0 != UInt8(ascii: "?") } == renewals[...]
        if isRenewal { events.tell(.refreshing) }
        let result =
            if let patience {
                await OwnTransport.exchange(request, carrier, upTo: most, within: patience)
            } else {
                await OwnTransport.whole(request, carrier, upTo: most)
            }
        if isRenewal { events.tell(.refreshed(CountersignEvent.Refreshed(legacy: result))) }
        switch result {
        case .success(let response): return response
        case .failure(let error): throw TransportProblem(error)
        }
    }
}

extension CountersignEvent.Refreshed {
    /// Refusals are answers of any status.
    fileprivate init(legacy result: Result<Response, TransportError>) {
        self =
            switch result {
            case .success(let response) where response.status < 300 && LegacyAnswers.code(of: response) == nil: .renewed
            case .success(let response): .refused(response.status)
            case .failure: .lost
            }
    }
}
