import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Carries what the state machine itself asks of the authority: logins, refreshes, sessions. Its answers are short and kept whole.
struct OwnTransport: Transport {
    let carrier: any Carrier
    let origin: Origin
    let events: Broadcast<CountersignEvent>
    /// The target of refreshes.
    let refresh: [UInt8]

    /// Bytes of an answer.
    private static let most = 1 << 20

    /// For one exchange. Four of them may be made with the vault's lease in hand, for which others wait two minutes: who trickles his
    /// answers must not make them give up.
    static let patience = Duration.seconds(20)

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        let isRefresh = draft.target == refresh
        if isRefresh { events.tell(.refreshing) }
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        let request = OutgoingRequest(draft, to: origin, body: body)
        let result = await OwnTransport.exchange(request, carrier, upTo: OwnTransport.most)
        if isRefresh { events.tell(.refreshed(CountersignEvent.Refreshed(result))) }
        switch result {
        case .success(let response): return response
        case .failure(let error): throw TransportProblem(error)
        }
    }

    /// The exchange, or the end of patience; `most` bytes of an answer.
    static func exchange(
        _ request: OutgoingRequest, _ carrier: any Carrier, upTo most: Int, within patience: Duration = patience
    ) async -> Result<Response, TransportError> {
        await withTaskGroup(of: Result<Response, TransportError>?.self) { group in
            group.addTask { await whole(request, carrier, upTo: most) }
            group.addTask {
                try? await Task.sleep(for: patience)
                return nil
            }
            if let first = await group.next(), let result = first {
                group.cancelAll()
                return result
            }
            // The transfer says how far it had come.
            group.cancelAll()
            guard let last = await group.next(), let result = last else {
                return .failure(TransportError(.cancelled, .outcomeUnknown))
            }
            if case .failure(let error) = result, error.cause == .cancelled, !Task.isCancelled {
                return .failure(TransportError(.timedOut(.total), error.fate))
            }
            return result
        }
    }

    /// The exchange, for as long as the carrier goes on.
    static func whole(
        _ request: OutgoingRequest, _ carrier: any Carrier, upTo most: Int
    ) async -> Result<Response, TransportError> {
        do throws(TransportError) {
            let answer = try await carrier.send(request)
            let body = try await answer.body.collect(upTo: most)
            return .success(Response(status: answer.status, fields: answer.fields.map(Draft.Field.init), body: body))
        } catch {
            return .failure(error)
        }
    }
}

extension CountersignEvent.Refreshed {
    fileprivate init(_ result: Result<Response, TransportError>) {
        self =
            switch result {
            case .success(let response) where response.status < 300: .renewed
            case .success(let response): .refused(response.status)
            case .failure: .lost
            }
    }
}
