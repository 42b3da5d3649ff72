#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The responses to a request that is repeated.
public struct APIPolling: AsyncSequence, Sendable {
    /// The response of one round.
    public typealias Element = (Data, APIResponse)
    /// The error that ends it.
    public typealias Failure = CountersignError

    /// Sends one round's request and returns its response.
    typealias Round = @Sendable () async throws(CountersignError) -> (Data, APIResponse)

    let interval: Duration
    /// Makes the round of an iterator, which then repeats it.
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

        /// The next response.
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
