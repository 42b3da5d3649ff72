// swift-format-ignore-file
// Alamofire names these, and documents them. Shapes of Alamofire 5.10, as far as Examples/Alamofire uses it;
// see README.md. Source: Alamofire's documentation.
import Foundation
import Security
import URLSession

public final class Session: Sendable {}
public final class Request: Sendable {
    public var retryCount: Int { 0 }
    public var response: HTTPURLResponse? { nil }
}
public enum RetryResult: Sendable {
    case retry, retryWithDelay(TimeInterval), doNotRetry, doNotRetryWithError(any Error)
}
public protocol RequestAdapter: Sendable {
    func adapt(
        _ urlRequest: URLRequest, for session: Session,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void)
}
public protocol RequestRetrier: Sendable {
    func retry(
        _ request: Request, for session: Session, dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void)
}
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}
public protocol ServerTrustEvaluating: Sendable {
    func evaluate(_ trust: SecTrust, forHost host: String) throws
}
