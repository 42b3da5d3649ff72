// Former public names and argument labels. The next version removes them. Where a trailing closure fits both
// forms, `@_disfavoredOverload` selects the present one.

import CountersignTransport

/// The former name of ``MockResponse``.
@available(*, deprecated, renamed: "MockResponse")
public typealias MockAnswer = MockResponse

/// The former name of ``RecordedRequest``.
@available(*, deprecated, renamed: "RecordedRequest")
public typealias SeenRequest = RecordedRequest

/// The former name of ``TestError``.
@available(*, deprecated, renamed: "TestError")
public typealias TestFailure = TestError

extension MockTransport {
    /// The former form of ``init(_:clock:answer:)``.
    @available(*, deprecated, renamed: "init(_:clock:answer:)")
    @_disfavoredOverload
    public convenience init(
        _ script: [MockStep] = [], clock: ManualClock = ManualClock(),
        _ answer: @escaping @Sendable (RecordedRequest) async throws(TransportError) -> MockResponse
    ) {
        self.init(script, clock: clock, answer: answer)
    }
}
