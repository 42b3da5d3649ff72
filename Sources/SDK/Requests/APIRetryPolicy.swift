import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust

/// How often a client repeats a request, and how long it waits before each repetition.
///
/// A request is repeated only if that is harmless: its method is safe (`GET`, `HEAD`, `OPTIONS`), or its
/// idempotency key shows the server that it is a copy. The client repeats a request that got no response,
/// and one that the authority refused for now; a safe one also after the backend's status 429, 502, 503 or
/// 504. It does not repeat a keyed request that the backend has answered, because the server would repeat
/// that response; nor a request of the app alone that may have arrived, because without a session the
/// server recognizes its key from the same address only. It never repeats a body that can be read only
/// once, a request to a server that is not trusted, or a keyed one once the server may have forgotten the
/// key: after ten minutes, or the longer time that the server has stated.
public struct APIRetryPolicy: Sendable, Hashable {
    /// How often a request is sent at most, including the first time: 1 to 10.
    public var attempts: Int
    /// The longest wait before the second attempt; the limit at most doubles with each later one.
    public var firstDelay: Duration
    /// The longest wait. If the server asks for a longer one (`Retry-After`), the request fails instead.
    public var longestDelay: Duration

    /// An `attempts` outside of 1 to 10 counts as the nearest of them.
    public init(
        attempts: Int, firstDelay: Duration = .milliseconds(500), longestDelay: Duration = .seconds(20)
    ) {
        self.attempts = min(max(attempts, 1), 10)
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
    }

    /// The app repeats requests itself, except for the one copy after a lost response.
    public static let never = APIRetryPolicy(attempts: 1)
    /// Three attempts within about two seconds, or as long as the server asks for.
    public static let standard = APIRetryPolicy(attempts: 3)

    /// The wait before an attempt: a random time up to a limit that doubles, so that clients which failed
    /// together do not return together. Nil if there is no further attempt.
    /// - Parameters:
    ///   - attempt: 2 for the first repetition.
    ///   - askedFor: the server's `Retry-After` in seconds.
    ///   - random: any number.
    func delay(beforeAttempt attempt: Int, askedFor: Int?, random: UInt64) -> Duration? {
        guard attempt <= min(max(attempts, 1), 10) else { return nil }
        let limit = min(longestDelay, firstDelay * (1 << max(attempt - 2, 0)))
        let drawn = limit * (Double(random >> 11) / Double(1 << 53))
        guard let askedFor else { return drawn }
        let asked = Duration.seconds(max(askedFor, 0))
        return asked <= longestDelay ? max(asked, drawn) : nil
    }
}

/// Repeats a call by a policy: what is repeated, and when.
struct CallRepetition: Sendable {
    let policy: APIRetryPolicy
    let recognition: Recognition
    let trace: Locked<CallTransport.Trace>
    private let random = SystemRandom()

    /// Which copies of a request the server executes once.
    enum Recognition: Sendable {
        /// Those with the same idempotency key.
        case byKey
        /// None: only safe methods are repeated.
        case none
    }

    /// Sends the request by `once` until the policy has no further attempt for it.
    func send(
        _ request: APIRequest,
        once: (APIRequest) async throws(CountersignError) -> APIAnswer
    ) async throws(CountersignError) -> APIAnswer {
        var attempt = 1
        // Whether the server may have executed an attempt whose response was lost.
        var hasLostAttempt = false
        while true {
            let delay: Duration
            do throws(CountersignError) {
                let answer = try await once(request)
                guard let wait = delayBeforeNext(request, attempt: attempt, after: answer.response) else {
                    return answer
                }
                delay = wait
            } catch {
                if case .transport(let failure) = error, failure.fate != .notSent {
                    hasLostAttempt = true
                }
                guard let wait = delayBeforeNext(request, attempt: attempt, after: error) else {
                    throw hasLostAttempt ? error.withUnknownOutcome : error
                }
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

    private func delayBeforeNext(
        _ request: APIRequest, attempt: Int, after response: APIResponse
    ) -> Duration? {
        guard !request.method.isUnsafe, [429, 502, 503, 504].contains(response.status) else { return nil }
        let askedFor = response.value(of: "retry-after").flatMap { Int($0) }
        return delayBeforeNext(request, attempt: attempt, askedFor: askedFor)
    }

    private func delayBeforeNext(
        _ request: APIRequest, attempt: Int, after error: CountersignError
    ) -> Duration? {
        guard !Task.isCancelled else { return nil }
        switch error {
        case .transport(let error) where error.isPassing:
            // Without a session a key is valid for one address, which changes with the network.
            let isTold = request.caller == .account || !request.method.isUnsafe
            guard isTold || error.fate == .notSent else { return nil }
            return delayBeforeNext(request, attempt: attempt, askedFor: nil)
        // A refusal without a time would be repeated.
        case .refused(let refusal) where refusal.retryAfter != nil && [429, 503].contains(refusal.status):
            return delayBeforeNext(request, attempt: attempt, askedFor: refusal.retryAfter)
        default: return nil
        }
    }

    /// Nil if the request is not to be sent again.
    private func delayBeforeNext(_ request: APIRequest, attempt: Int, askedFor: Int?) -> Duration? {
        guard request.body.isRepeatable else { return nil }
        switch recognition {
        case .byKey: guard !request.method.isUnsafe || request.isKeyed else { return nil }
        case .none: guard !request.method.isUnsafe else { return nil }
        }
        let number = random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return policy.delay(beforeAttempt: attempt + 1, askedFor: askedFor, random: number)
    }
}

extension APIRequest.Body {
    fileprivate var isRepeatable: Bool {
        if case .once = self { false } else { true }
    }
}

extension TransportError {
    /// Whether another attempt may succeed with nothing changed on this device.
    var isPassing: Bool {
        switch cause {
        case .offline, .hostNotFound, .connectionRefused, .timedOut, .connectionLost, .tls, .trustReplaced:
            true
        case .untrusted, .malformedAnswer, .answerTooLarge, .cancelled, .body, .bodyUsedUp, .keyExpired,
            .malformedRequest, .machine:
            false
        }
    }
}

extension CountersignError {
    /// The same failure after another attempt whose response was lost.
    fileprivate var withUnknownOutcome: CountersignError {
        guard case .transport(let error) = self else { return self }
        return .transport(TransportError(error.cause, fate: .outcomeUnknown))
    }
}
