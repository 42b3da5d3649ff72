/// How often a client asks again, and how long it waits before each time.
///
/// A request is sent again only where that does no harm: its method is safe (`GET`, `HEAD`, `OPTIONS`), or its idempotency key tells
/// the server that it is a copy. Sent again is one that got no answer, and one that the authority refused for now; a safe one
/// also where the backend's status is 429, 502, 503 or 504. A keyed request that the backend has answered is not: the server would
/// repeat that answer; nor is one of the app alone that may have arrived: without a session the server knows its key from the same
/// address only. Never sent again are a body that can be read once only, and requests to a server that is not trusted.
public struct RetryPolicy: Sendable, Hashable {
    /// How often a request is sent at most, the first time included: 1 to 10.
    public var attempts: Int
    /// The wait before the second attempt is at most so long; each later one at most twice the one before.
    public var firstDelay: Duration
    /// No wait is longer. Where the server asks for a longer one (`Retry-After`), the request fails instead.
    public var longestDelay: Duration

    /// As above; `attempts` outside of 1 to 10 counts as the nearest of them.
    public init(attempts: Int, firstDelay: Duration = .milliseconds(500), longestDelay: Duration = .seconds(20)) {
        self.attempts = min(max(attempts, 1), 10)
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
    }

    /// Each request is the app's to repeat, but for the one copy after a lost answer.
    public static let never = RetryPolicy(attempts: 1)
    /// Three attempts within about two seconds, or as long as the server asks for.
    public static let standard = RetryPolicy(attempts: 3)

    /// The wait before an attempt: between none and a limit that doubles, so that clients which failed together do not come back
    /// together. Nil where there is to be no further attempt.
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
