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
        APIPolling(client: self, request: request, interval: interval)
    }
}

/// Answers to a request that is made again and again.
public struct APIPolling: AsyncSequence, Sendable {
    /// One round's.
    public typealias Element = (Data, APIResponse)
    /// What ends it.
    public typealias Failure = CountersignError

    let client: CountersignClient
    let request: APIRequest
    let interval: Duration

    /// Each begins at once.
    public func makeAsyncIterator() -> Iterator { Iterator(polling: self) }

    /// Waits for round after round.
    public struct Iterator: AsyncIteratorProtocol {
        let polling: APIPolling
        /// All rounds are his who was signed in at the first.
        private let owner = CallOwner()
        private var isFirst = true
        private var isOver = false

        init(polling: APIPolling) { self.polling = polling }

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
                if !isFirst { try await APIPolling.rest(polling.interval) }
                isFirst = false
                do throws(CountersignError) {
                    return try await polling.client.data(for: polling.request, .round, by: owner)
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
