// Former public names, too general for an app that imports this module, and former argument labels. The next
// version removes them. Where a trailing closure fits both forms, `@_disfavoredOverload` selects the present
// one.

import CountersignTrust

/// The former name of ``HeaderField``.
@available(*, deprecated, renamed: "HeaderField")
public typealias HTTPField = HeaderField

/// The former name of ``NetworkReachability``.
@available(*, deprecated, renamed: "NetworkReachability")
public typealias Reachability = NetworkReachability

/// The former name of ``RequestTransport``.
@available(*, deprecated, renamed: "RequestTransport")
public typealias Carrier = RequestTransport

extension HeaderField {
    /// The former form of ``init(_:value:)``.
    @available(*, deprecated, renamed: "init(_:value:)")
    public init(_ name: String, _ value: String) { self.init(name, value: value) }
}

extension Origin {
    /// The former form of ``init(_:host:port:)``.
    @available(*, deprecated, renamed: "init(_:host:port:)")
    public init(_ security: Security, _ host: Trust.Host, port: UInt16 = 0) {
        self.init(security, host: host, port: port)
    }
}

extension OutgoingRequest {
    /// The former form of ``init(_:origin:target:fields:body:)``.
    @available(*, deprecated, renamed: "init(_:origin:target:fields:body:)")
    public init(
        _ method: String, _ origin: Origin, _ target: String, fields: [HeaderField] = [],
        body: RequestBody = .none
    ) {
        self.init(method, origin: origin, target: target, fields: fields, body: body)
    }
}

extension ReplayableBody {
    /// The former form of ``init(_:make:)``.
    @available(*, deprecated, renamed: "init(_:make:)")
    @_disfavoredOverload
    public init<Pieces: AsyncSequence & Sendable>(
        _ length: BodyLength, _ make: @escaping @Sendable () -> Pieces
    ) where Pieces.Element == [UInt8] {
        self.init(length, make: make)
    }
}

extension OnceBody {
    /// The former form of ``init(_:pieces:)``.
    @available(*, deprecated, renamed: "init(_:pieces:)")
    public convenience init<Pieces: AsyncSequence & Sendable>(_ length: BodyLength, _ pieces: Pieces)
    where Pieces.Element == [UInt8] {
        self.init(length, pieces: pieces)
    }
}

extension TransportError {
    /// The former form of ``init(_:fate:)``.
    @available(*, deprecated, renamed: "init(_:fate:)")
    public init(_ cause: Cause, _ fate: Fate) { self.init(cause, fate: fate) }
}
