// Former public names, too general for an app that imports this module. The next version removes them.

/// The former name of ``CountersignClient``.
@available(*, deprecated, renamed: "CountersignClient")
public typealias Client = CountersignClient

/// The former name of ``CountersignAccount``.
@available(*, deprecated, renamed: "CountersignAccount")
public typealias Account = CountersignAccount

/// The former name of ``CountersignState``.
@available(*, deprecated, renamed: "CountersignState")
public typealias ClientState = CountersignState

/// The former name of ``CountersignEvent``.
@available(*, deprecated, renamed: "CountersignEvent")
public typealias ClientEvent = CountersignEvent

/// The former name of ``CountersignError``.
@available(*, deprecated, renamed: "CountersignError")
public typealias ClientError = CountersignError

/// The former name of ``CountersignOptions``.
@available(*, deprecated, renamed: "CountersignOptions")
public typealias ClientOptions = CountersignOptions

/// The former name of ``APIInterceptor``.
@available(*, deprecated, renamed: "APIInterceptor")
public typealias Interceptor = APIInterceptor

/// The former name of ``InterceptorChain``.
@available(*, deprecated, renamed: "InterceptorChain")
public typealias Next = InterceptorChain

/// The former name of ``APIMethod``.
@available(*, deprecated, renamed: "APIMethod")
public typealias HTTPMethod = APIMethod

/// The former name of ``APIPolling``.
@available(*, deprecated, renamed: "APIPolling")
public typealias Polling = APIPolling

/// The former name of ``APIRetryPolicy``.
@available(*, deprecated, renamed: "APIRetryPolicy")
public typealias RetryPolicy = APIRetryPolicy
