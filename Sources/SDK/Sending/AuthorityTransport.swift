import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Sends the client's own requests: logins, refreshes, sessions. Their responses are short and collected
/// whole.
struct AuthorityTransport: Transport {
    let carrier: any RequestTransport
    let origin: Origin
    let events: Broadcast<CountersignEvent>
    /// The path of refreshes.
    let refresh: [UInt8]
    /// The most bytes of a response.
    let largestResponse: Int
    /// The timeout of one exchange. Four of them may run while this process holds the vault's lease, for
    /// which other processes wait two minutes: a server that responds slowly must not make them give up.
    var timeout = Duration.seconds(20)
    /// The code of a refusal that the status does not show.
    let refusalCode: @Sendable (Response) -> String?

    init(
        _ context: CallContext, refresh: String, largestResponse: Int,
        refusalCode: @escaping @Sendable (Response) -> String? = { _ in nil }
    ) {
        (carrier, origin, events) = (context.carrier, context.base.origin, context.report.events)
        (self.refresh, self.largestResponse) = (Array(refresh.utf8), largestResponse)
        self.refusalCode = refusalCode
    }

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        let isRefresh = draft.target.prefix { $0 != UInt8(ascii: "?") } == refresh[...]
        if isRefresh { events.tell(.refreshing) }
        let result = await exchange(OutgoingRequest(draft, to: origin))
        if isRefresh { events.tell(.refreshed(refreshed(result))) }
        return try result.get()
    }

    private func refreshed(_ result: Result<Response, TransportError>) -> CountersignEvent.Refreshed {
        switch result {
        case .success(let response) where response.status < 300 && refusalCode(response) == nil: .renewed
        case .success(let response): .refused(response.status)
        case .failure: .lost
        }
    }

    /// Runs the exchange until the timeout.
    private func exchange(_ request: OutgoingRequest) async -> Result<Response, TransportError> {
        await withTaskGroup(of: Result<Response, TransportError>?.self) { group in
            group.addTask { await whole(request) }
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
    private func whole(_ request: OutgoingRequest) async -> Result<Response, TransportError> {
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
