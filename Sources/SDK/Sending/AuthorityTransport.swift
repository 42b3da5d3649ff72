import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Sends the client's own requests to the authority: logins, refreshes, sessions. Their responses are short
/// and collected whole.
struct AuthorityTransport: Transport {
    let carrier: any RequestTransport
    let origin: Origin
    let events: Broadcast<CountersignEvent>
    /// The target of refreshes.
    let refresh: [UInt8]

    /// The most bytes of a response.
    private static let largestResponse = 1 << 20

    /// The timeout of one exchange. Four of them may run while this process holds the vault's lease, for
    /// which other processes wait two minutes: a server that responds slowly must not make them give up.
    static let timeout = Duration.seconds(20)

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        let isRefresh = draft.target == refresh
        if isRefresh { events.tell(.refreshing) }
        let body: RequestBody = draft.body.isEmpty ? .none : .bytes(draft.body)
        let request = OutgoingRequest(draft, to: origin, body: body)
        let result = await AuthorityTransport.exchange(
            request, over: carrier, upTo: AuthorityTransport.largestResponse)
        if isRefresh { events.tell(.refreshed(CountersignEvent.Refreshed(result))) }
        return try result.get()
    }

    /// Runs the exchange until the timeout; at most `largestResponse` bytes of a response.
    static func exchange(
        _ request: OutgoingRequest, over carrier: any RequestTransport, upTo largestResponse: Int,
        within timeout: Duration = timeout
    ) async -> Result<Response, TransportError> {
        await withTaskGroup(of: Result<Response, TransportError>?.self) { group in
            group.addTask { await whole(request, over: carrier, upTo: largestResponse) }
            group.addTask {
                try? await Task.sleep(for: timeout)
                return nil
            }
            if let first = await group.next(), let result = first {
                group.cancelAll()
                return result
            }
            // The transfer reports how far it had come.
            group.cancelAll()
            guard let last = await group.next(), let result = last else {
                return .failure(TransportError(.cancelled, fate: .outcomeUnknown))
            }
            if case .failure(let error) = result, error.cause == .cancelled, !Task.isCancelled {
                return .failure(TransportError(.timedOut(.total), fate: error.fate))
            }
            return result
        }
    }

    /// Runs the exchange for as long as the carrier continues.
    static func whole(
        _ request: OutgoingRequest, over carrier: any RequestTransport, upTo largestResponse: Int
    ) async -> Result<Response, TransportError> {
        do throws(TransportError) {
            let answer = try await carrier.send(request)
            let body = try await answer.body.collect(upTo: largestResponse)
            return .success(
                Response(status: answer.status, fields: answer.fields.map(Draft.Field.init), body: body))
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
