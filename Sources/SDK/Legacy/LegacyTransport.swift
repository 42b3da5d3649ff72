import CountersignClient
import CountersignTransport
import CountersignWire

/// Carries a legacy client's requests. Answers are kept whole: whether one says that the session is over stands in its body.
struct LegacyTransport: Transport {
    let carrier: any Carrier
    let origin: Origin
    /// Bytes of an answer.
    let most: Int

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        do throws(TransportError) {
            let answer = try await carrier.send(OutgoingRequest(draft, to: origin, body: body))
            let bytes = try await answer.body.collect(upTo: most)
            return Response(status: answer.status, fields: answer.fields.map(Draft.Field.init), body: bytes)
        } catch {
            throw TransportProblem(error)
        }
    }
}
