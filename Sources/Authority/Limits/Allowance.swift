/// How many attempts may come at once, and how fast the allowance for them grows back: a token bucket.
package struct Allowance: Sendable, Equatable {
    /// Attempts that a whole allowance holds; 1 at least.
    package let burst: Int
    /// Milliseconds in which one attempt grows back.
    package let interval: Int64

    package init(burst: Int, oneEach interval: Duration) {
        self.burst = min(max(burst, 1), 1_000_000)
        let (seconds, attoseconds) = interval.components
        let whole = min(max(seconds, 0), 86_400) * 1000 + attoseconds / 1_000_000_000_000_000
        self.interval = max(whole, 1)
    }

    /// Milliseconds until an allowance that was used up is whole again.
    var span: Int64 { Int64(burst) * interval }
}
