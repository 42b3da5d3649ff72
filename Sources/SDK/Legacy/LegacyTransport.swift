import CountersignClient
import CountersignTransport
import CountersignWire

/// Carries a legacy client's requests. Answers are kept whole: whether one says that the session is over stands in its body.
struct LegacyTransport: Transport {
    let carrier: any Carrier
    let origin: Origin
    /// Bytes of an answer.
    let most: Int
    /// For one exchange; nil where the carrier alone says how long it takes.
    var patience: Duration?

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        let request = OutgoingRequest(draft, to: origin, body: body)
        let result =
            if let patience {
                await OwnTransport.exchange(request, carrier, upTo: most, within: patience)
            } else {
                await OwnTransport.whole(request, carrier, upTo: most)
            }
        switch result {
        case .success(let response): return response
        case .failure(let error): throw TransportProblem(error)
        }
    }
}
