// swift-format-ignore-file
// Apple names these, and documents them. Shapes of the part of the unified log that the SDK uses; see
// README.md. Source: Apple's documentation of os.Logger.
@available(iOS 14, macOS 11, *)
public struct Logger: Sendable {
    public init(subsystem: String, category: String) {}
    public func log(level: OSLogType, _ message: OSLogMessage) {}
}
public struct OSLogType: Equatable, Sendable {
    public static var `default`: OSLogType { OSLogType() }
    public static var info: OSLogType { OSLogType() }
    public static var debug: OSLogType { OSLogType() }
    public static var error: OSLogType { OSLogType() }
    public static var fault: OSLogType { OSLogType() }
}
public struct OSLogPrivacy { public static var `public`: OSLogPrivacy { OSLogPrivacy() } }
public struct OSLogInterpolation: StringInterpolationProtocol {
    public init(literalCapacity: Int, interpolationCount: Int) {}
    public mutating func appendLiteral(_ literal: String) {}
    public mutating func appendInterpolation(
        _ argument: @autoclosure @escaping () -> String, privacy: OSLogPrivacy
    ) {}
}
public struct OSLogMessage: ExpressibleByStringInterpolation, ExpressibleByStringLiteral {
    public init(stringInterpolation: OSLogInterpolation) {}
    public init(stringLiteral value: String) {}
}
