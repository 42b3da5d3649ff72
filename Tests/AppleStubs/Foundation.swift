// swift-format-ignore-file
// Apple names these, and documents them. Shapes of Foundation, as far as the SDK uses them. Only script/floor
// compiles against it: Linux has a Foundation, but not one for a target of Apple's. `@available` stands where
// a name is newer than the floor, or could be thought to be. See README.md. Source: Apple's documentation of
// Foundation, NSData, NSURL, NSUserDefaults,and NSError.

@_exported import Dispatch

public typealias TimeInterval = Double

public protocol NSObjectProtocol: AnyObject {}
open class NSObject: NSObjectProtocol, Hashable {
    public init() {}
    public static func == (left: NSObject, right: NSObject) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) {}
}
public final class NSString: NSObject, ExpressibleByStringLiteral {
    public init(string: String) {}
    public convenience init(stringLiteral: String) { self.init(string: stringLiteral) }
}
public final class NSNumber: NSObject {}
open class NSError: NSObject, Error, @unchecked Sendable {
    public var code: Int { 0 }
    public var domain: String { "" }
}
public let NSOSStatusErrorDomain = ""
open class NSArray: NSObject {}
public final class NSMutableArray: NSArray { public func add(_ object: Any) {} }
open class NSDictionary: NSObject { public subscript(_ key: Any) -> Any? { nil } }
public final class NSMutableDictionary: NSDictionary {
    public override subscript(_ key: Any) -> Any? { get { nil } set {} }
}
open class NSData: NSObject {
    public convenience init(bytes: UnsafeRawPointer?, length: Int) { self.init() }
    public var length: Int { 0 }
    public var bytes: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 1)! }
}
public final class NSDate: NSObject {
    public convenience init(timeIntervalSince1970: TimeInterval) { self.init() }
}

public protocol ContiguousBytes {
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
}
public protocol DataProtocol: RandomAccessCollection where Element == UInt8 {}
extension Array: ContiguousBytes, DataProtocol where Element == UInt8 {}
extension UnsafeRawBufferPointer: ContiguousBytes, DataProtocol {
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try body(self)
    }
}
public struct Data: ContiguousBytes, DataProtocol, Hashable, Sendable, Codable {
    public init() {}
    public init<S: Sequence>(_ bytes: S) where S.Element == UInt8 {}
    public init(bytes: UnsafeRawPointer, count: Int) {}
    public init(contentsOf url: URL) throws {}
    public var startIndex: Int { 0 }
    public var endIndex: Int { 0 }
    public subscript(_ index: Int) -> UInt8 { 0 }
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try [UInt8]().withUnsafeBytes(body)
    }
    public mutating func resetBytes(in range: Range<Int>) {}
    @available(macOS 26, iOS 26, *) public var bytes: RawSpan { @_lifetime(borrow self) get { fatalError() } }
}
extension Data: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSData { NSData() }
    public static func _forceBridgeFromObjectiveC(_ source: NSData, result: inout Data?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSData, result: inout Data?) -> Bool {
        false
    }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSData?) -> Data { Data() }
}

public struct Date: Hashable, Sendable, Codable {
    public init() {}
    public init(timeIntervalSince1970: TimeInterval) {}
    public var timeIntervalSince1970: TimeInterval { 0 }
}
public struct URL: Hashable, Sendable, Codable {
    public init?(string: String) {}
    @available(macOS 14, iOS 17, *) public init?(string: String, encodingInvalidCharacters: Bool) {}
    public init(fileURLWithPath path: String) {}
    @available(macOS 13, iOS 16, *) public init(filePath path: String) {}
    @available(macOS 13, iOS 16, *) public func appending(path: String) -> URL { self }
    public func deletingLastPathComponent() -> URL { self }
    public var absoluteString: String { "" }
    public var path: String { "" }
    public var host: String? { nil }
    public var scheme: String? { nil }
    public var port: Int? { nil }
}
public struct URLError: Error {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public init(rawValue: Int) { self.rawValue = rawValue }
        public let rawValue: Int
    }
    public var code: Code { Code(rawValue: 0) }
    public var localizedDescription: String { "" }
}
extension URLError.Code {
    public static var appTransportSecurityRequiresSecureConnection: Self { Self(rawValue: -1022) }
    public static var badServerResponse: Self { Self(rawValue: -1011) }
    public static var badURL: Self { Self(rawValue: -1000) }
    public static var callIsActive: Self { Self(rawValue: -1019) }
    public static var cancelled: Self { Self(rawValue: -999) }
    public static var cannotConnectToHost: Self { Self(rawValue: -1004) }
    public static var cannotFindHost: Self { Self(rawValue: -1003) }
    public static var cannotParseResponse: Self { Self(rawValue: -1017) }
    public static var clientCertificateRejected: Self { Self(rawValue: -1205) }
    public static var clientCertificateRequired: Self { Self(rawValue: -1206) }
    public static var dataNotAllowed: Self { Self(rawValue: -1020) }
    public static var dnsLookupFailed: Self { Self(rawValue: -1006) }
    public static var internationalRoamingOff: Self { Self(rawValue: -1018) }
    public static var networkConnectionLost: Self { Self(rawValue: -1005) }
    public static var notConnectedToInternet: Self { Self(rawValue: -1009) }
    public static var secureConnectionFailed: Self { Self(rawValue: -1200) }
    public static var serverCertificateHasBadDate: Self { Self(rawValue: -1201) }
    public static var serverCertificateHasUnknownRoot: Self { Self(rawValue: -1203) }
    public static var serverCertificateNotYetValid: Self { Self(rawValue: -1204) }
    public static var serverCertificateUntrusted: Self { Self(rawValue: -1202) }
    public static var timedOut: Self { Self(rawValue: -1001) }
    public static var unsupportedURL: Self { Self(rawValue: -1002) }
}
extension Error { public var localizedDescription: String { "" } }

open class Stream: NSObject {
    public func open() {}
    public func close() {}
}
open class InputStream: Stream {}
open class OutputStream: Stream {
    public func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int { 0 }
}
open class OperationQueue: NSObject, @unchecked Sendable { public var maxConcurrentOperationCount = 0 }
open class Thread: NSObject { public class func detachNewThread(_ block: @escaping @Sendable () -> Void) {} }

open class JSONEncoder: @unchecked Sendable {
    public init() {}
    public enum KeyEncodingStrategy: Sendable { case useDefaultKeys, convertToSnakeCase }
    public enum DateEncodingStrategy: Sendable {
        case secondsSince1970, iso8601, custom(@Sendable (Date, any Encoder) throws -> Void)
    }
    public var keyEncodingStrategy = KeyEncodingStrategy.useDefaultKeys
    public var dateEncodingStrategy = DateEncodingStrategy.secondsSince1970
    public func encode<T: Encodable>(_ value: T) throws -> Data { Data() }
}
open class JSONDecoder: @unchecked Sendable {
    public init() {}
    public enum KeyDecodingStrategy: Sendable { case useDefaultKeys, convertFromSnakeCase }
    public enum DateDecodingStrategy: Sendable { case secondsSince1970, iso8601 }
    public var keyDecodingStrategy = KeyDecodingStrategy.useDefaultKeys
    public var dateDecodingStrategy = DateDecodingStrategy.secondsSince1970
    public func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}

open class UserDefaults: NSObject, @unchecked Sendable {
    public init?(suiteName: String?) {}
    public func string(forKey key: String) -> String? { nil }
    public func object(forKey key: String) -> Any? { nil }
    public func bool(forKey key: String) -> Bool { false }
    public func removeObject(forKey key: String) {}
    public func synchronize() -> Bool { true }
}
public enum FileManager {
    public enum SearchPathDirectory: UInt, Sendable { case applicationSupportDirectory = 14 }
    public struct SearchPathDomainMask: OptionSet, Sendable {
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public let rawValue: UInt
        public static var userDomainMask: Self { Self(rawValue: 1) }
    }
}
public func NSSearchPathForDirectoriesInDomains(
    _ directory: FileManager.SearchPathDirectory, _ mask: FileManager.SearchPathDomainMask, _ expands: Bool
) -> [String] { [] }
public func NSHomeDirectory() -> String { "" }

public struct Notification {
    public struct Name: RawRepresentable, Hashable, Sendable {
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(_ rawValue: String) { self.rawValue = rawValue }
        public let rawValue: String
    }
    public var name: Name { Name("") }
    public var object: Any? { nil }
    public var userInfo: [AnyHashable: Any]? { nil }
}
open class NotificationCenter: NSObject, @unchecked Sendable {
    public class var `default`: NotificationCenter { NotificationCenter() }
    public func post(name: Notification.Name, object: Any?, userInfo: [AnyHashable: Any]? = nil) {}
    public func addObserver(
        forName name: Notification.Name?, object: Any?, queue: OperationQueue?,
        using block: @escaping @Sendable (Notification) -> Void
    ) -> any NSObjectProtocol { NSObject() }
    public func removeObserver(_ observer: Any) {}
}
