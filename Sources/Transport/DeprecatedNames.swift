// Former public names, too general for an app that imports this module. The next version removes them.

/// The former name of ``HeaderField``.
@available(*, deprecated, renamed: "HeaderField")
public typealias HTTPField = HeaderField

/// The former name of ``NetworkReachability``.
@available(*, deprecated, renamed: "NetworkReachability")
public typealias Reachability = NetworkReachability

/// The former name of ``RequestTransport``.
@available(*, deprecated, renamed: "RequestTransport")
public typealias Carrier = RequestTransport
