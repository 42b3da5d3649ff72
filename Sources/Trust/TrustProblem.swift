/// Why a value of trust cannot be made: one sentence for the person who wrote it.
public struct TrustProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was found, and what was expected.
    public let description: String

    init(_ description: String) { self.description = description }
}
