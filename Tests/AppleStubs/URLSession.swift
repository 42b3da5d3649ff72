// swift-format-ignore-file
// Apple names these, and documents them. Shapes of the part of Foundation that Linux has in another module;
// see README.md. Every file of the check imports it, as on Apple's platforms it comes with Foundation. What
// is optional to implement there is a requirement here, so that a misspelt method fails. Source: Apple's
// documentation of URLSession and URLRequest.
import Foundation
import Security

public struct URLRequest: Sendable {
    public init(url: URL) {}
    public var url: URL?
    public var httpMethod: String?
    public var httpBody: Data?
    public var httpBodyStream: InputStream? { nil }
    public var allHTTPHeaderFields: [String: String]?
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {}
    public func value(forHTTPHeaderField field: String) -> String? { nil }
}

public class URLResponse: NSObject, @unchecked Sendable {
    public var expectedContentLength: Int64 { 0 }
}
public class HTTPURLResponse: URLResponse, @unchecked Sendable {
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {}
    public var statusCode: Int { 0 }
    public var allHeaderFields: [AnyHashable: Any] { [:] }
}

public class HTTPCookieStorage: NSObject, @unchecked Sendable {}
public class URLCache: NSObject, @unchecked Sendable {}
public class URLCredentialStorage: NSObject, @unchecked Sendable {}
public class URLCredential: NSObject, @unchecked Sendable { public init(trust: SecTrust) {} }
public let NSURLAuthenticationMethodServerTrust = ""
public class URLProtectionSpace: NSObject, @unchecked Sendable {
    public var authenticationMethod: String { "" }
    public var host: String { "" }
    public var serverTrust: SecTrust? { nil }
}
public class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    public var protectionSpace: URLProtectionSpace { URLProtectionSpace() }
}

public class URLSessionConfiguration: NSObject, @unchecked Sendable {
    public class var ephemeral: URLSessionConfiguration { URLSessionConfiguration() }
    public var httpCookieStorage: HTTPCookieStorage?
    public var httpShouldSetCookies = true
    public var httpCookieAcceptPolicy = HTTPCookie.AcceptPolicy.always
    public var urlCache: URLCache?
    public var urlCredentialStorage: URLCredentialStorage?
    public var tlsMinimumSupportedProtocolVersion = tls_protocol_version_t.TLSv12
    public var waitsForConnectivity = false
    public var httpMaximumConnectionsPerHost = 6
    public var timeoutIntervalForRequest: TimeInterval = 60
    public var timeoutIntervalForResource: TimeInterval = 60
    public var connectionProxyDictionary: [AnyHashable: Any]?
}
public enum HTTPCookie { public enum AcceptPolicy: UInt, Sendable { case always, never } }

public class URLSessionTask: NSObject, @unchecked Sendable {
    public var taskIdentifier: Int { 0 }
    public func resume() {}
    public func suspend() {}
    public func cancel() {}
}
public class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
public class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {}

public class URLSession: NSObject, @unchecked Sendable {
    public enum AuthChallengeDisposition: Int, Sendable {
        case useCredential, performDefaultHandling, cancelAuthenticationChallenge
    }
    public enum ResponseDisposition: Int, Sendable { case cancel, allow }
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {}
    public func dataTask(with request: URLRequest) -> URLSessionDataTask { URLSessionDataTask() }
    public func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        URLSessionUploadTask()
    }
    public func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        URLSessionUploadTask()
    }
    public func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        URLSessionUploadTask()
    }
    public func finishTasksAndInvalidate() {}
    public func invalidateAndCancel() {}
}

public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

extension Stream {
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: AutoreleasingUnsafeMutablePointer<InputStream?>?,
        outputStream: AutoreleasingUnsafeMutablePointer<OutputStream?>?
    ) {}
}
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>
