/// What the test kit could not do.
public struct TestFailure: Error, CustomStringConvertible {
    /// In words for whoever runs the test.
    public let description: String

    init(description: String) { self.description = description }
}
