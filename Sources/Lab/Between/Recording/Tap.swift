/// Writes down what passes on a ``Network``, and is noticed by nobody. The lab's own hears an honest network alone: somebody in the middle
/// reads anyway.
package final class Tap: Sendable {
    private let end: @Sendable () -> Recording

    init(end: @escaping @Sendable () -> Recording) { self.end = end }

    /// Ends the listening, and gives what was heard; nothing, where the one who listened failed on the way.
    package func stop() -> Recording { end() }
}
