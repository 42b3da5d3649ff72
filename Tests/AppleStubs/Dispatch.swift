// swift-format-ignore-file
// Apple names these, and documents them. Shapes of Dispatch, as far as the SDK uses it, for script/floor as
// Foundation.swift. See README.md. Source: Apple's documentation of Dispatch.

open class DispatchSemaphore: @unchecked Sendable {
    public init(value: Int) {}
    public func wait() {}
    @discardableResult public func signal() -> Int { 0 }
}
open class DispatchQueue: @unchecked Sendable {
    public init(label: String) {}
    public class func concurrentPerform(iterations: Int, execute work: @Sendable (Int) -> Void) {}
    public func async(execute work: @escaping @Sendable () -> Void) {}
}
public enum DispatchTimeInterval: Sendable {
    case seconds(Int), milliseconds(Int), microseconds(Int), nanoseconds(Int), never
}
public enum DispatchTimeoutResult: Sendable { case success, timedOut }
public struct DispatchTime: Sendable {
    public static let distantFuture = DispatchTime()
    public static func now() -> DispatchTime { DispatchTime() }
    public static func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
}
extension DispatchSemaphore {
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
}
