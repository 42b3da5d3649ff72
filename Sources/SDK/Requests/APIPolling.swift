#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension CountersignClient {
    /// The same request again and again, the first at once and each other one `interval` after the answer before it. A round in which
    /// there is no answer is left out. Ends, by throwing, with the session, when somebody else signs in, and where the authority wants another version, whichever
    /// request brought the news and whatever ``CountersignOptions/whenPaused`` says: nobody polls for an app that is not served.
    public func poll(_ request: APIRequest, every interval: Duration) -> APIPolling {
        APIPolling(interval: interval) {
            // All rounds are his who was signed in at the first.
            let owner = CallOwner()
            return { () async throws(CountersignError) in try await self.data(for: request, .round, by: owner) }
        }
    }
}

/// Answers to a request that is made again and again.
public struct APIPolling: AsyncSequence, Sendable {
    /// One round's.
    public typealias Element = (Data, APIResponse)
    /// What ends it.
    public typealias Failure = CountersignError

    /// One round's request and its answer.
    typealias Round = @Sendable () async throws(CountersignError) -> (Data, APIResponse)

    let interval: Duration
    /// What each iterator asks, again and again.
    let begin: @Sendable () -> Round

    /// Each begins at once.
    public func makeAsyncIterator() -> Iterator { Iterator(polling: self) }

    /// Waits for round after round.
    public struct Iterator: AsyncIteratorProtocol {
        private let interval: Duration
        private let ask: Round
        private var isFirst = true
        private var isOver = false

        init(polling: APIPolling) {
            interval = polling.interval
            ask = polling.begin()
        }

        /// The next answer.
        public mutating func next() async throws(CountersignError) -> (Data, APIResponse)? {
            try await next(isolation: #isolation)
        }

        /// The same on the caller's actor.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CountersignError) -> (Data, APIResponse)? {
            guard !isOver else { return nil }
            do throws(CountersignError) {
                return try await round()
            } catch {
                isOver = true
                throw error
            }
        }

        private mutating func round() async throws(CountersignError) -> (Data, APIResponse) {
            while true {
                if !isFirst { try await APIPolling.rest(interval) }
                isFirst = false
                do throws(CountersignError) {
                    return try await ask()
                } catch {
                    guard case .transport = error else { throw error }
                }
            }
        }
    }

    private static func rest(_ interval: Duration) async throws(CountersignError) {
        do {
            try await Task.sleep(for: interval)
        } catch {
            throw .cancelled
        }
    }
}
