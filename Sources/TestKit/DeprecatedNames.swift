// Former public names. The next version removes them.

/// The former name of ``MockResponse``.
@available(*, deprecated, renamed: "MockResponse")
public typealias MockAnswer = MockResponse

/// The former name of ``RecordedRequest``.
@available(*, deprecated, renamed: "RecordedRequest")
public typealias SeenRequest = RecordedRequest

/// The former name of ``TestError``.
@available(*, deprecated, renamed: "TestError")
public typealias TestFailure = TestError
