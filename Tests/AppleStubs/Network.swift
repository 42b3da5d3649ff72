// swift-format-ignore-file
// Apple names these, and documents them. Shapes of Network.framework; see README.md. Source: Apple's
// documentation of NWEndpoint and ProxyConfiguration.
import Foundation
import URLSession

public enum NWEndpoint: Sendable {
    public struct Host: Sendable { public init(_ text: String) {} }
    public struct Port: Sendable { public init?(rawValue: UInt16) {} }
    case hostPort(host: Host, port: Port)
}
@available(macOS 14, iOS 17, *) public struct ProxyConfiguration: Sendable {
    public init(httpCONNECTProxy: NWEndpoint) {}
}
extension URLSessionConfiguration {
    @available(macOS 14, iOS 17, *) public var proxyConfigurations: [ProxyConfiguration] { get { [] } set {} }
}
