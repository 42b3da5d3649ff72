import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust

extension ClientCore {
    /// Asks, and asks again by ``CountersignOptions/retry``.
    func askWithRetries(
        _ request: APIRequest, _ call: CountersignEvent.Call, _ trace: Locked<CallTransport.Trace>, _ manner: Manner
    ) async throws(CountersignError) -> APIAnswer {
        var attempt = 1
        while true {
            let delay: Duration
            do throws(CountersignError) {
                let answer = try await ask(request, call, trace, manner)
                guard let wait = retryDelay(request, manner, attempt: attempt, after: answer.response) else {
                    return answer
                }
                delay = wait
            } catch {
                guard let wait = retryDelay(request, manner, attempt: attempt, after: error) else { throw error }
                delay = wait
            }
            attempt += 1
            trace.with { $0.before = .backOff(delay) }
            do {
                try await Task.sleep(for: delay)
            } catch {
                throw .cancelled
            }
        }
    }

    private func retryDelay(
        _ request: APIRequest, _ manner: Manner, attempt: Int, after response: APIResponse
    ) -> Duration? {
        guard !request.method.isUnsafe, [429, 502, 503, 504].contains(response.status) else { return nil }
        return retryDelay(
            request, manner, attempt: attempt, askedFor: response.value(of: "retry-after").flatMap { Int($0) })
    }

    private func retryDelay(
        _ request: APIRequest, _ manner: Manner, attempt: Int, after error: CountersignError
    ) -> Duration? {
        guard !Task.isCancelled else { return nil }
        switch error {
        case .transport(let error) where error.isPassing:
            // Without a session a key counts from one address, which another network changes.
            let isTold = request.caller == .account || !request.method.isUnsafe
            guard isTold || error.fate == .notSent else { return nil }
            return retryDelay(request, manner, attempt: attempt, askedFor: nil)
        // What says no word of a time will say the same again.
        case .refused(let refusal) where refusal.retryAfter != nil && [429, 503].contains(refusal.status):
            return retryDelay(request, manner, attempt: attempt, askedFor: refusal.retryAfter)
        default: return nil
        }
    }

    /// Nil where the request is not to be sent again.
    private func retryDelay(_ request: APIRequest, _ manner: Manner, attempt: Int, askedFor: Int?) -> Duration? {
        guard manner.occasion == .single, request.body.isRepeatable else { return nil }
        guard !request.method.isUnsafe || request.isKeyed else { return nil }
        let random = surroundings.random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return options.retry.delay(beforeAttempt: attempt + 1, askedFor: askedFor, random: random)
    }
}

extension APIRequest {
    /// Whether the server can tell a copy of it from another wish.
    fileprivate var isKeyed: Bool { idempotencyKey != nil || value(of: "idempotency-key") != nil }
}

extension APIRequest.Body {
    fileprivate var isRepeatable: Bool {
        if case .once = self { false } else { true }
    }
}

extension TransportError {
    /// Whether another attempt may succeed with nothing changed here.
    var isPassing: Bool {
        switch cause {
        case .offline, .hostNotFound, .connectionRefused, .timedOut, .connectionLost, .tls, .trustReplaced: true
        case .untrusted, .malformedAnswer, .answerTooLarge, .cancelled, .body, .bodyUsedUp, .malformedRequest, .machine:
            false
        }
    }
}
